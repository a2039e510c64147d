/* SPDX-License-Identifier: MIT */
#include "agent/event/maps.h"

#include <errno.h>
#include <stdatomic.h>

#include "agent/event/agent.h"
#include "agent/event/marks.h"
#include "agent/event/recorder.h"
#include "agent/file/chunks.h"
#include "agent/file/livemaps.h"
#include "agent/file/rewrite_live.h"
#include "agent/file/ring.h"
#include "agent/file/stacktab.h"
#include "agent/file/writer.h"
#include "agent/process/process.h"
#include "agent/sys/diag.h"
#include "agent/sys/next.h"
#include "agent/sys/sys.h"
#include "agent/thread/inside.h"
#include "agent/unwind/lane.h"
#include "agent/unwind/modules.h"

#include "agent/sys/poison.h"

#define TURNS_MAX 4u /* of the ring, while one record is written */

static const struct sp_process *process;

void sp_maps_init(const struct sp_process *of)
{
	process = of;
	sp_livemaps_begin(of->config.file_bytes);
}

/* Is it recorded in this process? */
static bool is_recording(void)
{
	return sp_process_is_running() && process && !process->has_no_file &&
	       !sp_process_is_new(process);
}

static uint32_t thread_index(void)
{
	const struct sp_thread *t = &sp_thread;

	return t->generation == atomic_load_explicit(&process->generation,
						     memory_order_relaxed)
		       ? t->index
		       : 0;
}

static uint64_t whole_pages(size_t bytes)
{
	const uint64_t mask = sp_sys_page_bytes() - 1;

	return ((uint64_t)bytes + mask) & ~mask;
}

/* ---- ends ---- */

struct sp_maps_call sp_maps_begin(void)
{
	if (!sp_livemaps_any())
		return (struct sp_maps_call){.number = 0};
	return (struct sp_maps_call){sp_livemaps_number(), sp_writer_time(), 0};
}

struct sp_maps_call sp_maps_begin_move(const void *p, size_t bytes)
{
	struct sp_maps_call call = sp_maps_begin();
	const uint64_t start = (uintptr_t)p;
	volatile uint32_t mark;
	struct sp_span any;

	if (!call.number || !is_recording())
		return call;
	sp_inside_begin(&mark);
	call.moves =
		sp_livemaps_find(start, start + whole_pages(bytes), 0, &any);
	sp_inside_end(&mark);
	return call;
}

static void record_end(const struct sp_maps_call *call, uint64_t start,
		       uint64_t bytes)
{
	struct sp_record r = {.type = SP_RECORD_UNMAP};

	r.u.unmap = (struct sp_record_unmap){call->number, call->time_ns, start,
					     bytes, thread_index()};
	if (!sp_recorder_append(&r))
		sp_diag_lose(SP_LOSS_MAP, 1);
}

/* Write what is UNWRITTEN (livemaps.c), with any free lane. */
static void write_owed(void)
{
	struct sp_thread *t = &sp_thread;
	struct sp_lane *lane;

	if (!sp_writer_is_open())
		return;
	/* As sp_recorder_append(): a child goes on into nowhere. */
	t->writing++;
	atomic_signal_fence(memory_order_seq_cst);
	lane = sp_lane_take(&t->lane_hint);
	if (lane) {
		sp_livemaps_write(lane);
		sp_lane_give(lane);
	}
	atomic_signal_fence(memory_order_seq_cst);
	t->writing--;
}

/* Pieces as of sp_livemaps_cut().  An end that is about nothing does no harm:
 * it is recorded if that is not known. */
static void note_end(const struct sp_maps_call *call, uint64_t start,
		     uint64_t bytes, int pieces)
{
	if (pieces < 0 && pieces != -EAGAIN)
		sp_diag_lose(SP_LOSS_MAP, 1);
	if (pieces)
		record_end(call, start, bytes);
}

static void take_end(const struct sp_maps_call *call, uint64_t start,
		     uint64_t bytes)
{
	note_end(call, start, bytes,
		 sp_livemaps_cut(start, start + bytes, call->number));
	if (sp_livemaps_owes())
		write_owed();
}

SP_ARCH_ALIGNED void sp_maps_ended(const struct sp_maps_call *call,
				   const void *p, size_t bytes)
{
	const uint64_t length = whole_pages(bytes);
	volatile uint32_t mark;
	int saved_errno = errno;

	if (!call->number || !length || !is_recording())
		return;
	sp_inside_begin(&mark);
	take_end(call, (uintptr_t)p, length);
	sp_inside_end(&mark);
	errno = saved_errno;
}

void sp_maps_finish(void)
{
	if (process && !process->has_no_file)
		write_owed();
}

/* ---- mappings ---- */

/* From now on it is there. */
static void begin_span(struct sp_span *s)
{
	s->number = sp_livemaps_number();
	s->time_ns = sp_writer_time();
	s->thread = thread_index();
}

static void to_record(const struct sp_span *s, struct sp_record *r)
{
	r->type = SP_RECORD_MAP;
	r->u.map = (struct sp_record_map){
		s->number,         s->flags,  s->time_ns, s->start,
		s->end - s->start, s->thread, s->stack};
}

/* With its stack, both in one segment.  A turn may come between them. */
static bool append_mapping(struct sp_lane *lane, struct sp_span *s,
			   const struct sp_call_frame *frame)
{
	struct sp_record r;

	for (unsigned int i = 0; i < TURNS_MAX; i++) {
		const struct sp_stack_place place = sp_stacktab_place(
			lane, (unsigned int)process->config.depth, frame);
		const uint32_t only = place.id ? place.segment : 0;

		s->stack = place.id;
		to_record(s, &r);
		if (sp_chunks_append_to(lane, &r, only)) {
			s->segment = lane->tail.segment;
			return true;
		}
		if (!only || only == sp_ring_segment())
			return false;
	}
	return false;
}

/* The reader takes it for unmapped, since its end would not be recorded. */
static void give_up(const struct sp_span *s)
{
	const struct sp_maps_call call = {sp_livemaps_number(), s->time_ns, 0};

	sp_diag_lose(SP_LOSS_MAP, 1);
	record_end(&call, s->start, s->end - s->start);
}

static void record_mapping(struct sp_lane *lane, struct sp_span *s,
			   const struct sp_call_frame *frame)
{
	if (!append_mapping(lane, s, frame)) {
		sp_diag_lose(SP_LOSS_MAP, 1);
		return;
	}
	if (sp_livemaps_put(s)) {
		give_up(s);
		return;
	}
	if (sp_ring_segment() == s->segment)
		return;
	if (append_mapping(lane, s, frame))
		sp_livemaps_set_place(s);
	else
		sp_diag_lose(SP_LOSS_MAP, 1);
}

/* An allocator in a library of its own maps by the same function; what the C
 * library maps for its own does not come here. */
static bool is_allocators(const struct sp_call_frame *frame)
{
	struct sp_module_entry *e =
		sp_modules_find((uintptr_t)frame->pc - 1, NULL);

	return e && atomic_load_explicit(&e->map, memory_order_relaxed) ==
			    sp_next_provider_map();
}

/* A mapping.  If the table was locked, whether this call made one is decided
 * later: whether its old place had one, or its range has parts without access.
 */
struct made {
	struct sp_span span;
	enum { IS_MADE, IS_MOVED, IS_OPENED } how;
	bool is_changed; /* the table, or it will be */
	struct sp_maps_call call;
	uint64_t old_start, old_bytes;
};

/* Its stack, if it has one, is in the segment that it names. */
static void change_later(struct made *m)
{
	const int r = m->how == IS_OPENED
			      ? sp_livemaps_open(&m->span)
			      : sp_livemaps_move(m->old_start,
						 m->old_start + m->old_bytes,
						 m->call.number, &m->span);

	m->is_changed = true;
	if (r < 0)
		sp_diag_lose(SP_LOSS_MAP, 1);
}

static void record_later(struct sp_lane *lane, struct made *m,
			 const struct sp_call_frame *frame)
{
	const struct sp_stack_place place = sp_stacktab_place(
		lane, (unsigned int)process->config.depth, frame);

	m->span.stack = place.id;
	m->span.segment = place.id ? place.segment : sp_ring_segment();
	change_later(m);
	sp_livemaps_write(lane);
}

/* The thread is in the agent, and suspended. */
static void take_mapping(struct made *m, const struct sp_call_frame *frame)
{
	struct sp_thread *t = &sp_thread;
	struct sp_lane *lane = sp_lane_take(&t->lane_hint);

	if (!lane) {
		sp_diag_lose(SP_LOSS_MAP, 1);
		return;
	}
	if (!is_allocators(frame)) {
		if (sp_recorder_open_file(t)) {
			if (t->recorded != sp_chunks_thread_mark(t->index))
				sp_recorder_thread(t, lane);
			begin_span(&m->span);
			if (m->how == IS_MADE)
				record_mapping(lane, &m->span, frame);
			else
				record_later(lane, m, frame);
			sp_rewrite_live_step(lane);
		} else {
			sp_diag_lose(SP_LOSS_MAP, 1);
		}
	}
	sp_lane_give(lane);
	sp_marks_complete();
}

/* The record's segment is not known yet.  If this one is too early, the record
 * is written twice. */
static void record_nested(struct sp_span *s)
{
	struct sp_record r;

	to_record(s, &r);
	if (!sp_recorder_append(&r))
		sp_diag_lose(SP_LOSS_MAP, 1);
	else if (sp_livemaps_put(s))
		give_up(s);
	else if (sp_ring_segment() != s->segment && !sp_recorder_append(&r))
		sp_diag_lose(SP_LOSS_MAP, 1);
}

/* A signal handler has interrupted the agent: without a stack. */
static void take_nested(struct made *m)
{
	volatile uint32_t mark;

	if (!sp_writer_is_open())
		return;
	sp_inside_begin(&mark);
	begin_span(&m->span);
	m->span.segment = sp_ring_segment();
	if (m->how == IS_MADE) {
		record_nested(&m->span);
	} else {
		change_later(m);
		write_owed();
	}
	sp_inside_end(&mark);
}

static void take_made(struct made *m, const struct sp_call_frame *frame)
{
	volatile uint32_t mark;

	if (!process || process->has_no_file || sp_thread.paused ||
	    m->span.end <= m->span.start)
		return;
	if (sp_agent_enter(&mark, frame)) {
		take_mapping(m, frame);
		sp_agent_leave(&mark);
	} else if (is_recording()) {
		take_nested(m);
	}
}

SP_ARCH_ALIGNED void sp_maps_made(const void *p, size_t bytes, uint32_t flags,
				  const struct sp_call_frame *frame)
{
	const uint64_t start = (uintptr_t)p;
	struct made m = {.span = {.start = start,
				  .end = start + whole_pages(bytes),
				  .flags = flags}};
	int saved_errno = errno;

	take_made(&m, frame);
	errno = saved_errno;
}

/* The table was taken before the call. */
static void move_later(struct made *m, const struct sp_call_frame *frame)
{
	volatile uint32_t mark;

	m->how = IS_MOVED;
	record_end(&m->call, m->old_start, m->old_bytes);
	take_made(m, frame);
	/* An allocator's, for instance. */
	if (m->is_changed)
		return;
	sp_inside_begin(&mark);
	if (sp_livemaps_cut(m->old_start, m->old_start + m->old_bytes,
			    m->call.number) == -EBUSY)
		sp_diag_lose(SP_LOSS_MAP, 1);
	sp_inside_end(&mark);
}

SP_ARCH_ALIGNED void sp_maps_moved(const struct sp_maps_call *call,
				   const void *old, size_t old_bytes,
				   const void *made, size_t bytes,
				   const struct sp_call_frame *frame)
{
	const uint64_t start = (uintptr_t)made;
	struct made m = {.span = {.start = start,
				  .end = start + whole_pages(bytes),
				  .flags = SP_MAP_MOVED},
			 .call = *call,
			 .old_start = (uintptr_t)old,
			 .old_bytes = whole_pages(old_bytes)};
	int saved_errno = errno;

	if (!call->number || !is_recording())
		return;
	if (made != old)
		sp_maps_ended(call, made, bytes);
	if (call->moves == -EAGAIN) {
		move_later(&m, frame);
	} else {
		sp_maps_ended(call, old, old_bytes);
		if (call->moves)
			take_made(&m, frame);
	}
	errno = saved_errno;
}

SP_ARCH_ALIGNED void sp_maps_opened(const void *p, size_t bytes,
				    const struct sp_call_frame *frame)
{
	const uint64_t end = (uintptr_t)p + whole_pages(bytes);
	struct made m = {.span = {.end = (uintptr_t)p}};
	volatile uint32_t mark;
	int saved_errno = errno, found = 1;

	if (!sp_livemaps_any() || !is_recording())
		return;
	for (unsigned int i = 0; i < SP_LIVEMAPS_PARTS && found == 1; i++) {
		const uint64_t at = m.span.end;

		sp_inside_begin(&mark);
		found = sp_livemaps_find(at, end, SP_MAP_NO_ACCESS, &m.span);
		sp_inside_end(&mark);
		if (found == -EAGAIN)
			m = (struct made){.how = IS_OPENED,
					  .span = {.start = at, .end = end}};
		m.span.flags = SP_MAP_OPENED;
		if (found)
			take_made(&m, frame);
	}
	errno = saved_errno;
}
