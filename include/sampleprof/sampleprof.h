/* SPDX-License-Identifier: MIT */
#ifndef SAMPLEPROF_SAMPLEPROF_H
#define SAMPLEPROF_SAMPLEPROF_H

#include <stdint.h>

/*
 * The public interface of sampleprof, for C (with GNU extensions) and C++.
 *
 * Nothing needs to be linked: a program that was compiled with this header runs
 * with libsampleprof.so preloaded and without.  Without it, and in a process
 * that is not being profiled, every function returns -1 and does nothing.
 *
 * All functions may be called by any thread, also in a signal handler; errno is
 * left alone.  In a handler that interrupted the profiler they return -1.
 */
#ifdef __cplusplus
extern "C" {
#endif

/* Exact counts, not estimates: what has been allocated (a realloc counts with
 * its new size, a request for 0 bytes as 1), whether or not it was freed. */
struct sampleprof_totals {
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
};

/* A phase that is to end: see sampleprof_phase_begin. */
struct sampleprof_phase {
	char before[64]; /* name of the phase around it; not terminated */
	unsigned int before_bytes;
	int is_open;
};

#ifdef SAMPLEPROF_NO_CALLS
#define SAMPLEPROF_CALL_(ret, name, parameters, arguments) ret name parameters;
#else
/*
 * A function of that name which calls the one of the library, if there is one.
 * Its address is read from where the loader puts it, whatever the program was
 * compiled as: a linker that may settle a weak reference by itself, in a
 * program that is not position-independent, settles it as absent.
 */
#if defined(__x86_64__) && !defined(__ILP32__)
#define SAMPLEPROF_ADDRESS_(name, ret)                                         \
	__asm__(".weak " #name "\n\tmovq " #name "@GOTPCREL(%%rip), %0"        \
		: "=r"(ret))
#elif defined(__aarch64__) && !defined(__ILP32__)
#define SAMPLEPROF_ADDRESS_(name, ret)                                         \
	__asm__(".weak " #name "\n\tadrp %0, :got:" #name                      \
		"\n\tldr %0, [%0, :got_lo12:" #name "]"                        \
		: "=r"(ret))
#else
#define SAMPLEPROF_ADDRESS_(name, ret) ((ret) = 0)
#endif
#define SAMPLEPROF_CALL_(ret, name, parameters, arguments)                     \
	static inline ret name parameters __asm__("sampleprof_call." #name);   \
	static inline __attribute__((always_inline, unused))                   \
	ret name parameters                                                    \
	{                                                                      \
		ret(*function) parameters;                                     \
		SAMPLEPROF_ADDRESS_(name, function);                           \
		return function ? function arguments : -1;                     \
	}
#endif

/* ---- exact counts ---- */

/* Of the calling thread since its first allocation; not what it allocated while
 * it had paused.  0, or -1. */
SAMPLEPROF_CALL_(int, sampleprof_thread_totals,
		 (struct sampleprof_totals * ret), (ret))

/* Of the process.  Other threads go on allocating meanwhile: each is counted up
 * to a moment within this call (beyond 447 at once: to their last check-in, at
 * most 1 MiB ago).  Takes about a microsecond for each thread.
 * 0, or -1. */
SAMPLEPROF_CALL_(int, sampleprof_process_totals,
		 (struct sampleprof_totals * ret), (ret))

/* ---- phases ---- */

/*
 * From now on the process is in the phase `name`, until the next mark.  The
 * report has exact totals of each phase, and samples fall in a phase by their
 * time.  All threads are in the same phase; phases of the same name are one;
 * the name is text of at most 64 bytes, the rest is cut off.
 *
 * A mark takes about a microsecond for each thread and some 40 bytes of the
 * file, so phases should last for milliseconds at least.  0, or -1: also if the
 * mark could not be recorded, which the report says.
 */
SAMPLEPROF_CALL_(int, sampleprof_mark, (const char *name), (name))

/*
 * The same until sampleprof_phase_end, which returns to the phase before, also
 * to having none.  In C SAMPLEPROF_PHASE, in C++ sampleprof::phase do both.  If
 * several threads have such phases at once, the last mark wins.
 */
SAMPLEPROF_CALL_(int, sampleprof_phase_begin,
		 (struct sampleprof_phase * ret, const char *name), (ret, name))
SAMPLEPROF_CALL_(int, sampleprof_phase_end, (struct sampleprof_phase * phase),
		 (phase))

/*
 * A moment with a name: the file gets the exact totals as they are now, also by
 * object size, and the report can be asked about that moment (--at NAME).
 * Nothing has to be written out for that: the file can be read at any time.
 * 0, or -1.
 */
SAMPLEPROF_CALL_(int, sampleprof_snapshot, (const char *name), (name))

/* ---- what is sampled ---- */

/*
 * Start or stop sampling, or change its period (bytes, 1 to 2^40; also while it
 * is stopped).  Exact counts go on in any case.  The calling thread follows at
 * once, others before they have allocated another 1 MiB; what was allocated
 * unsampled is counted as such.  0, also if it is so already; or -1.
 */
SAMPLEPROF_CALL_(int, sampleprof_start, (void), ())
SAMPLEPROF_CALL_(int, sampleprof_stop, (void), ())
SAMPLEPROF_CALL_(int, sampleprof_set_period, (uint64_t bytes), (bytes))

/*
 * Leave the calling thread alone from here to sampleprof_resume: what it
 * allocates is neither counted nor sampled (what it frees is still noticed).
 * For harnesses that do not want to be in their own measurement.  0; 1 if it
 * was so already, so that whoever got 0 is to resume; or -1.
 */
SAMPLEPROF_CALL_(int, sampleprof_pause, (void), ())
SAMPLEPROF_CALL_(int, sampleprof_resume, (void), ())

#undef SAMPLEPROF_CALL_

#ifdef __cplusplus
} /* extern "C" */
#endif

#if defined(__cplusplus) && !defined(SAMPLEPROF_NO_CALLS)
namespace sampleprof
{

/* A phase that ends with this object. */
class phase
{
	struct sampleprof_phase phase_;

      public:
	explicit phase(const char *name)
	{
		phase_.is_open = 0;
		sampleprof_phase_begin(&phase_, name);
	}
	~phase()
	{
		sampleprof_phase_end(&phase_);
	}
	phase(const phase &) = delete;
	phase &operator=(const phase &) = delete;
};

/* The calling thread is left alone as long as this object lives. */
class pause
{
	int result_;

      public:
	pause() : result_(sampleprof_pause())
	{
	}
	~pause()
	{
		if (result_ == 0)
			sampleprof_resume();
	}
	pause(const pause &) = delete;
	pause &operator=(const pause &) = delete;
};

} /* namespace sampleprof */
#elif !defined(SAMPLEPROF_NO_CALLS)
static inline __attribute__((unused)) struct sampleprof_phase
sampleprof_open_phase_(const char *name)
{
	struct sampleprof_phase phase;

	phase.is_open = 0;
	sampleprof_phase_begin(&phase, name);
	return phase;
}

static inline __attribute__((unused)) void sampleprof_close_phase_(
	struct sampleprof_phase *phase)
{
	sampleprof_phase_end(phase);
}

/* A phase until the end of the block that this statement stands in. */
#define SAMPLEPROF_PHASE(name)     SAMPLEPROF_PHASE_(name, __LINE__)
#define SAMPLEPROF_PHASE_(name, n) SAMPLEPROF_PHASE__(name, n)
#define SAMPLEPROF_PHASE__(name, n)                                            \
	struct sampleprof_phase sampleprof_phase_##n                           \
		__attribute__((cleanup(sampleprof_close_phase_), unused)) =    \
			sampleprof_open_phase_(name)
#endif

#endif
