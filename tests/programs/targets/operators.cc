/* SPDX-License-Identifier: MIT */
/*
 * The 8 operators new with the 12 operators delete, in a known pattern:
 * operators THREADS ROUNDS [nothrow].  Prints like entries.  With "nothrow" no
 * request fails by an exception, for an allocator that cannot throw.
 *
 * Sizes with an alignment are multiples of it: libstdc++ rounds others up
 * before it asks for memory.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "truth.h"

namespace
{

constexpr auto ALIGN = std::align_val_t{128};

std::atomic<void *> sink;

void *keep(truth &t, void *p, size_t n)
{
	EXPECT(p);
	truth_add(&t, p, n);
	memset(p, 0x5a, n);
	sink.store(p, std::memory_order_relaxed);
	return p;
}

size_t multiple(size_t n)
{
	return (n + 128) / 128 * 128;
}

NOINLINE void call_new(truth &t, size_t n)
{
	::operator delete(keep(t, ::operator new(n), n));
	::operator delete(keep(t, ::operator new(n), n), n);
	::operator delete(keep(t, ::operator new(n), n), std::nothrow);
	STAY();
}

NOINLINE void call_new_array(truth &t, size_t n)
{
	::operator delete[](keep(t, ::operator new[](n), n));
	::operator delete[](keep(t, ::operator new[](n), n), n);
	::operator delete[](keep(t, ::operator new[](n), n), std::nothrow);
	STAY();
}

NOINLINE void call_new_nothrow(truth &t, size_t n)
{
	::operator delete(keep(t, ::operator new(n, std::nothrow), n));
	STAY();
}

NOINLINE void call_new_array_nothrow(truth &t, size_t n)
{
	::operator delete[](keep(t, ::operator new[](n, std::nothrow), n));
	STAY();
}

NOINLINE void call_new_aligned(truth &t, size_t n)
{
	n = multiple(n);
	::operator delete(keep(t, ::operator new(n, ALIGN), n), ALIGN);
	::operator delete(keep(t, ::operator new(n, ALIGN), n), n, ALIGN);
	::operator delete(keep(t, ::operator new(n, ALIGN), n), ALIGN,
			  std::nothrow);
	STAY();
}

NOINLINE void call_new_array_aligned(truth &t, size_t n)
{
	n = multiple(n);
	::operator delete[](keep(t, ::operator new[](n, ALIGN), n), ALIGN);
	::operator delete[](keep(t, ::operator new[](n, ALIGN), n), n, ALIGN);
	::operator delete[](keep(t, ::operator new[](n, ALIGN), n), ALIGN,
			    std::nothrow);
	STAY();
}

NOINLINE void call_new_aligned_nothrow(truth &t, size_t n)
{
	n = multiple(n);
	::operator delete(keep(t, ::operator new(n, ALIGN, std::nothrow), n),
			  ALIGN);
	STAY();
}

NOINLINE void call_new_array_aligned_nothrow(truth &t, size_t n)
{
	n = multiple(n);
	::operator delete[](
		keep(t, ::operator new[](n, ALIGN, std::nothrow), n), ALIGN);
	STAY();
}

struct form {
	const char *name;
	void (*call)(truth &t, size_t n);
};

#define FORM(name)                                                             \
	{                                                                      \
#name, name                                                    \
	}
constexpr form forms[] = {
	FORM(call_new),
	FORM(call_new_array),
	FORM(call_new_nothrow),
	FORM(call_new_array_nothrow),
	FORM(call_new_aligned),
	FORM(call_new_array_aligned),
	FORM(call_new_aligned_nothrow),
	FORM(call_new_array_aligned_nothrow),
};
#undef FORM

constexpr size_t FORMS = sizeof(forms) / sizeof(forms[0]);
constexpr size_t sizes[] = {0, 1, 24, 100, 5000, 300000};

struct worker {
	truth forms[FORMS];
	truth measured;

	void run(int rounds)
	{
		truth before = measured_thread();

		for (int i = 0; i < rounds; i++)
			for (size_t n : sizes)
				for (size_t j = 0; j < FORMS; j++)
					::forms[j].call(forms[j], n);
		measured = truth_since(measured_thread(), before);
	}
};

template <typename Call> int catches(Call call)
{
	try {
		sink = call();
	} catch (const std::bad_alloc &) {
		return 1;
	}
	return 0;
}

/* What fails throws, and is not counted (the exception object itself comes
 * from malloc). */
void fail_everywhere(bool may_throw)
{
	volatile size_t huge = HUGE_BYTES;
	int thrown = 0;

	EXPECT(!::operator new(huge, std::nothrow));
	EXPECT(!::operator new[](huge, std::nothrow));
	EXPECT(!::operator new(huge, ALIGN, std::nothrow));
	EXPECT(!::operator new[](huge, ALIGN, std::nothrow));
	if (may_throw) {
		thrown += catches([&] { return ::operator new(huge); });
		thrown += catches([&] { return ::operator new[](huge); });
		thrown += catches([&] { return ::operator new(huge, ALIGN); });
		thrown +=
			catches([&] { return ::operator new[](huge, ALIGN); });
	}
	truth t = {static_cast<uint64_t>(thrown), 0};
	truth_print("thrown", &t);
}

} // namespace

int main(int argc, char **argv)
{
	size_t threads = argc > 1 ? static_cast<size_t>(atoi(argv[1])) : 1;
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	static worker workers[64];
	truth sum = {0, 0}, measured = {0, 0}, process;

	fail_everywhere(argc <= 3);
	if (threads == 1) {
		workers[0].run(rounds);
	} else {
		std::vector<std::thread> running;

		for (size_t i = 0; i < threads; i++)
			running.emplace_back(&worker::run, &workers[i], rounds);
		for (auto &thread : running)
			thread.join();
	}
	process = measured_process();
	for (size_t i = 0; i < threads; i++) {
		for (size_t j = 0; j < FORMS; j++) {
			truth_print(forms[j].name, &workers[i].forms[j]);
			truth_add_all(&sum, &workers[i].forms[j]);
		}
		truth_add_all(&measured, &workers[i].measured);
	}
	truth_print("truth", &sum);
	truth_print("measured", &measured);
	truth_print("process", &process);
	return 0;
}
