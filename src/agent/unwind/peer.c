/* SPDX-License-Identifier: MIT */
/*
 * libunwind's interface for other processes, about this one: it asks for each
 * word of memory, each register and each table.
 *
 * I1  A peer is a copy of libunwind with data of its own.  It belongs to a
 *     lane, so that no two threads, and no signal handler in the middle of it,
 *     use one at the same time.
 * I2  `is_clean`: its data are as a walk leaves them that has returned.  A walk
 *     that was left in the middle (an abort, a jump out of a signal handler, a
 *     fork) leaves it false, and the next one begins with the data as they were
 *     at first.
 * I3  It has memory that is only ever added to while it walks; at first all
 *     that its data refer to is in them or below `fixed`.
 */
#include "agent/unwind/peer.h"

#include <fcntl.h>
#include <string.h>

#include "agent/sys/image.h"
#include "agent/sys/linkmap.h"
#include "agent/sys/sys.h"

#ifdef SP_HAVE_LIBUNWIND
#include <libunwind-x86_64.h>

#include "agent/unwind/cfi.h"
#include "agent/unwind/code.h"
#include "agent/unwind/modules.h"
#include "agent/unwind/stack_bounds.h"
#include "agent/unwind/step.h"

#include "agent/sys/poison.h"

#define HEAP_BYTES (128u << 10)
#define DATA_MAX   (64u << 10)
#define TLS_BYTES  256u
/* Calls of libunwind take 3 KiB; a signal handler may come on top. */
#define STACK_BYTES (16u << 10)
#define OWN_MAX     32u     /* of this library's own frames */
#define READS_MAX   200000u /* of memory; a frame takes 120 */

struct peer {
	_Alignas(16) uint8_t vectors[SP_ARCH_VECTORS_BYTES];
	char *base; /* of the copy */
	bool is_bound, is_clean;
	unw_addr_space_t space;
	struct {
		unw_addr_space_t (*create)(unw_accessors_t *, int);
		int (*begin)(unw_cursor_t *, unw_addr_space_t, void *);
		int (*step)(unw_cursor_t *);
		int (*get)(unw_cursor_t *, unw_regnum_t, unw_word_t *);
		int (*is_signal)(unw_cursor_t *);
		int (*search)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *,
			      unw_proc_info_t *, int, void *);
	} call;
	char *heap, *fixed; /* I3: free from there on */
	char *data;
	size_t data_bytes;

	/* The present walk. */
	void *left[5];
	unw_cursor_t cursor;
	struct sp_cfi_registers registers;
	struct sp_step_way way;
	struct sp_stack_bounds_known known[SP_STACK_BOUNDS_KNOWN];
	unsigned int reads;
	bool is_end;
	struct sp_walk walk;
	struct sp_walk_hash hash;
	void *pcs[SP_LANE_DEPTH + 1];

	uint64_t tls[TLS_BYTES / 8];
	char first[DATA_MAX]; /* the data as they were */
	_Alignas(16) char memory[HEAP_BYTES];
};

static struct sp_image image;
static struct peer *peers[SP_PEERS];

/* ---- what it is bound to ---- */

/* The one whose code called: its return address says so.  NULL: none. */
static struct peer *peer_of(const void *address)
{
	for (unsigned int i = 0; i < SP_PEERS; i++)
		if (peers[i] && (uintptr_t)address - (uintptr_t)peers[i]->base <
					image.bytes)
			return peers[i];
	return NULL;
}

#define CALLER peer_of(__builtin_return_address(0))

static long leave(void)
{
	struct peer *peer = CALLER;

	if (peer)
		__builtin_longjmp(peer->left, 1);
	return -1;
}

static void *get_memory(struct peer *peer, size_t bytes)
{
	char *p = peer ? peer->heap : NULL;

	if (!p || bytes > (size_t)(peer->memory + HEAP_BYTES - p))
		return NULL;
	peer->heap = p + ((bytes + 15) & ~(size_t)15);
	return p;
}

static void *no_malloc(size_t bytes)
{
	return get_memory(CALLER, bytes);
}

static void *no_calloc(size_t n, size_t bytes)
{
	struct peer *peer = CALLER;
	void *p = bytes && n > HEAP_BYTES / bytes ? NULL
						  : get_memory(peer, n * bytes);

	return p ? memset(p, 0, n * bytes) : NULL;
}

/* Not while it is bound, when its data are not to refer to it (I3).  Where
 * there is no more, the walk is left: libunwind would go on. */
static void *no_mmap(void *at, size_t bytes)
{
	struct peer *peer = CALLER;
	void *p;

	(void)at;
	if (!peer || !peer->is_bound)
		return MAP_FAILED;
	p = get_memory(peer, bytes);
	if (!p)
		__builtin_longjmp(peer->left, 1);
	return memset(p, 0, bytes);
}

static long no_op(void)
{
	return 0;
}

static long no_page_bytes(void)
{
	return SP_ARCH_PAGE_MIN;
}

static int *no_errno(void)
{
	static int number;

	return &number;
}

struct tls_index {
	char *block;
	uint64_t offset;
};

static void *no_tls(const struct tls_index *index)
{
	return index->offset < TLS_BYTES ? index->block + index->offset
					 : index->block;
}

#define IMPORT(name, function)                                                 \
	{                                                                      \
		name, (void (*)(void))function                                 \
	}

static const struct sp_image_import imports[] = {
	IMPORT("memcpy", memcpy),
	IMPORT("memmove", memmove),
	IMPORT("memset", memset),
	IMPORT("strlen", strlen),
	IMPORT("malloc", no_malloc),
	IMPORT("calloc", no_calloc),
	IMPORT("mmap", no_mmap),
	IMPORT("free", no_op),
	IMPORT("munmap", no_op),
	/* It prepares for walks without our accessors, which there are none of.
	 */
	IMPORT("pipe2", no_op),
	IMPORT("mincore", no_op),
	IMPORT("getpagesize", no_page_bytes),
	IMPORT("sysconf", no_page_bytes),
	IMPORT("sigfillset", no_op),
	IMPORT("sigprocmask", no_op),
	IMPORT("pthread_sigmask", no_op),
	IMPORT("pthread_mutex_init", no_op),
	IMPORT("pthread_mutex_lock", no_op),
	IMPORT("pthread_mutex_unlock", no_op),
	IMPORT("__errno_location", no_errno),
	IMPORT("__tls_get_addr", no_tls),
	{NULL, NULL},
};

/* ---- what it asks for ---- */

static bool is_in(const struct sp_stack_bounds_span *span, uintptr_t at)
{
	return at - span->low < span->high - span->low &&
	       span->high - at >= sizeof(at);
}

static __attribute__((no_sanitize_address)) int read_word(
	unw_addr_space_t space, unw_word_t at, unw_word_t *word, int is_write,
	void *arg)
{
	struct peer *peer = arg;
	struct sp_step_way *way = &peer->way;
	struct sp_slice segment;

	(void)space;
	if (is_write || ++peer->reads > READS_MAX)
		return -UNW_EINVAL;
	if (!is_in(&way->stack, at) && way->module &&
	    sp_code_segment(way->module, at, PF_R, &segment) &&
	    (uintptr_t)segment.end - at >= sizeof(at)) {
		*word = *(const sp_stack_bounds_word *)at;
		return 0;
	}
	return sp_stack_bounds_read(is_in(&way->stack, at) ? &way->stack
							   : &way->code,
				    at, word)
		       ? 0
		       : -UNW_EINVAL;
}

/* Its numbers are those of DWARF. */
static int read_register(unw_addr_space_t space, unw_regnum_t i,
			 unw_word_t *value, int is_write, void *arg)
{
	const struct sp_cfi_registers *r = &((struct peer *)arg)->registers;

	(void)space;
	if (is_write || i < 0 || i >= SP_ARCH_REGISTERS || !(r->known >> i & 1))
		return -UNW_EBADREG;
	*value = r->value[i];
	return 0;
}

static int find_procedure(unw_addr_space_t space, unw_word_t ip,
			  unw_proc_info_t *info, int wants_all, void *arg)
{
	struct peer *peer = arg;
	struct sp_module_entry *e = sp_modules_find(ip, peer->way.module);
	uint32_t count = 0;
	const uint8_t *table = e ? sp_cfi_table(e, &count) : NULL;
	unw_dyn_info_t found = {.format = UNW_INFO_FORMAT_REMOTE_TABLE};
	int ret;

	peer->way.module = e;
	if (!table)
		return -UNW_ENOINFO;
	found.start_ip = e->start;
	found.end_ip = e->end;
	found.u.rti.segbase = (uintptr_t)table;
	found.u.rti.table_data = (uintptr_t)table + SP_CFI_HEADER_BYTES;
	found.u.rti.table_len = count; /* in words, as a pair is */
	ret = peer->call.search(space, ip, &found, info, wants_all, peer);
	/* As what is to be given back. */
	info->format = UNW_INFO_FORMAT_TABLE;
	return ret;
}

static void put_nothing(unw_addr_space_t space, unw_proc_info_t *info,
			void *arg)
{
	(void)space;
	(void)info;
	(void)arg;
}

static int no_list(unw_addr_space_t space, unw_word_t *list, void *arg)
{
	(void)space;
	(void)list;
	(void)arg;
	return -UNW_ENOINFO;
}

/* ---- one of them ---- */

static bool find_functions(struct peer *peer)
{
	const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{"create_addr_space", &peer->call.create},
		{"init_remote", &peer->call.begin},
		{"step", &peer->call.step},
		{"get_reg", &peer->call.get},
		{"is_signal_frame", &peer->call.is_signal},
		{"dwarf_search_unwind_table", &peer->call.search},
	};
	char name[64] = "_Ux86_64_";

	for (unsigned int i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *at;

		strcpy(name + 9, wanted[i].name);
		at = sp_image_function(&image, peer->base, name);
		if (!at)
			return false;
		memcpy(wanted[i].to, &at, sizeof(at));
	}
	return true;
}

/* To where a walk can begin. */
static __attribute__((noinline)) bool begin_peer(struct peer *peer)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_procedure,
		.put_unwind_info = put_nothing,
		.get_dyn_info_list_addr = no_list,
		.access_mem = read_word,
		.access_reg = read_register,
	};

	if (__builtin_setjmp(peer->left))
		return false;
	peer->space = peer->call.create(&accessors, 0);
	if (!peer->space)
		return false;
	/* It has no registers yet: that is refused. */
	peer->call.begin(&peer->cursor, peer->space, peer);
	return true;
}

static const char *bind_peer(struct peer *peer)
{
	const char *why;

	peer->heap = peer->memory;
	why = sp_image_bind(&image, peer->base, imports, (void (*)(void))leave,
			    peer->tls);
	if (why)
		return why;
	peer->data = sp_image_data(&image, peer->base, &peer->data_bytes);
	if (!peer->data || peer->data_bytes > DATA_MAX ||
	    image.tls.bytes > TLS_BYTES || !find_functions(peer) ||
	    !begin_peer(peer))
		return "is not the libunwind that this was built with";
	memcpy(peer->first, peer->data, peer->data_bytes);
	peer->fixed = peer->heap;
	peer->is_bound = peer->is_clean = true;
	return NULL;
}

/* I2 */
static void clean(struct peer *peer)
{
	if (peer->is_clean)
		return;
	memcpy(peer->data, peer->first, peer->data_bytes);
	memset(peer->tls, 0, sizeof(peer->tls));
	peer->heap = peer->fixed;
}

/* ---- a walk ---- */

/* A frame of the program.  False: it can be none. */
static bool add_frame(struct peer *peer, uintptr_t pc)
{
	struct sp_walk *walk = &peer->walk;

	if (peer->call.is_signal(&peer->cursor)) {
		/* The frame that it was interrupted in, and the one before,
		 * which only returns from the signal: no call is there. */
		peer->way.checked = ++pc;
		if (walk->n)
			walk->pcs[walk->n - 1] =
				(char *)walk->pcs[walk->n - 1] + 1;
	} else if (!sp_step_is_code(&peer->way, pc)) {
		return false;
	}
	walk->pcs[walk->n++] = (void *)pc;
	return true;
}

/* Up to `max` frames from `from` on; peer->is_end: the last step was refused
 * without an error. */
static __attribute__((noinline)) void walk_up(struct peer *peer,
					      const struct sp_call_frame *from,
					      unsigned int max)
{
	bool is_own = true;
	unw_word_t pc, sp;

	if (__builtin_setjmp(peer->left))
		return;
	peer->registers.known = sp_arch_registers(peer->registers.value);
	if (peer->call.begin(&peer->cursor, peer->space, peer) < 0)
		return;
	for (unsigned int i = 0; i < max + OWN_MAX && peer->walk.n < max; i++) {
		const int ret = peer->call.step(&peer->cursor);

		if (ret < 0)
			return;
		if (ret == 0 ||
		    peer->call.get(&peer->cursor, UNW_REG_IP, &pc) < 0 ||
		    peer->call.get(&peer->cursor, UNW_REG_SP, &sp) < 0 || !pc)
			break;
		is_own = is_own && (pc != (uintptr_t)from->pc ||
				    sp != sp_call_frame_end(from));
		if (!is_own && !add_frame(peer, pc))
			return;
	}
	peer->is_end = peer->walk.n < max;
	peer->is_clean = true;
}

/* Has the whole stack of the thread been one piece, with room for the walk?  A
 * signal handler on a stack of its own has frames below those that it
 * interrupted, or may be anywhere. */
static bool has_room(struct peer *peer, const struct sp_walk *tables)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	const struct sp_stack_bounds_span room =
		sp_stack_bounds_around(peer->known, here - STACK_BYTES);

	if (here < STACK_BYTES || room.end == UINTPTR_MAX ||
	    room.high != room.end)
		return false;
	for (unsigned int i = 1; i < tables->n; i++)
		if (tables->at[tables->first + i].sp <
		    tables->at[tables->first + i - 1].sp)
			return false;
	return true;
}

/* Does the walk end where one by tables does, or tables that it used? */
static bool is_whole(struct peer *peer, const struct sp_walk *tables)
{
	const struct sp_walk *walk = &peer->walk;
	const uintptr_t last = (uintptr_t)walk->pcs[walk->n - 1];
	struct sp_module_entry *e;

	if (!peer->is_end)
		return false;
	if (tables->is_whole &&
	    (uintptr_t)tables->pcs[tables->first + tables->n - 1] == last)
		return true;
	e = sp_modules_find(last - 1, peer->way.module);
	return e &&
	       sp_cfi_find(&peer->way.lane->cfi, e, last).kind == SP_CFI_END;
}

const struct sp_walk *sp_peer_walk(struct sp_lane *lane,
				   const struct sp_call_frame *from,
				   unsigned int max,
				   const struct sp_walk *tables, bool *is_cut)
{
	const unsigned int i = sp_lane_number(lane) - 1u;
	struct peer *peer = i < SP_PEERS ? peers[i] : NULL;
	struct sp_walk *walk;
	bool ends;

	if (!peer || (!peer->is_bound && bind_peer(peer)) ||
	    !has_room(peer, tables))
		return tables;
	clean(peer);
	peer->is_clean = peer->is_end = false;
	peer->reads = 0;
	walk = &peer->walk;
	*walk = (struct sp_walk){.modules = sp_modules_count(),
				 .pcs = peer->pcs,
				 .hashes = &peer->hash};
	sp_step_begin(&peer->way, lane, from);
	sp_arch_save_vectors(peer->vectors);
	walk_up(peer, from, max);
	sp_arch_restore_vectors(peer->vectors);
	ends = walk->n == max || (walk->n && is_whole(peer, tables));
	if (!ends && (!*is_cut || walk->n <= tables->n))
		return tables;
	*is_cut = !ends;
	/* The same frames have the same registers. */
	if (walk->n == tables->n &&
	    memcmp(walk->pcs, tables->pcs + tables->first,
		   walk->n * sizeof(*walk->pcs)) == 0)
		walk->at = tables->at + tables->first;
	peer->hash = SP_WALK_HASH_OUTSIDE;
	for (unsigned int n = walk->n; n--;)
		peer->hash = sp_walk_hash_add(peer->hash, walk->pcs[n]);
	return walk;
}

/* ---- the copy ---- */

static const char *map_peers(long fd, uint64_t most)
{
	const char *why = sp_image_read(&image, fd);

	/* The program would lack the rest, or the profile. */
	if (!why && SP_PEERS * (image.bytes + sizeof(struct peer)) > most)
		why = "takes too much of the address space that is left";
	for (unsigned int i = 0; !why && i < SP_PEERS; i++) {
		char *base = sp_image_map(&image, fd, sizeof(struct peer));

		if (!base)
			return i ? NULL : "cannot be mapped";
		peers[i] = (struct peer *)(base + image.bytes);
		peers[i]->base = base;
		/* The others when they are needed. */
		if (i == 0)
			why = bind_peer(peers[i]);
	}
	if (why)
		memset(peers, 0, sizeof(peers));
	return why;
}

const char *sp_peer_init(const char *path, uint64_t most)
{
	const long fd =
		SP_SYS4(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	const char *why;

	if (fd < 0)
		return "cannot be opened";
	/* It reads below the stack pointer, and the copies' data pass from one
	 * thread to the next: both would be reported. */
	why = sp_sys_is_valgrind() ? "is not used in valgrind"
				   : map_peers(fd, most);
	SP_SYS1(close, fd);
	return why;
}
#else
#include "agent/sys/poison.h"

const char *sp_peer_init(const char *path, uint64_t most)
{
	(void)path;
	(void)most;
	return "is not in this build";
}

const struct sp_walk *sp_peer_walk(struct sp_lane *lane,
				   const struct sp_call_frame *from,
				   unsigned int max,
				   const struct sp_walk *tables, bool *is_cut)
{
	(void)lane;
	(void)from;
	(void)max;
	(void)is_cut;
	return tables;
}
#endif

bool sp_peer_init_beside(uint64_t most, char why[SP_PEER_WHY_BYTES])
{
	static const char name[] = "libsampleprof-unwind.so";
	const struct link_map *self = sp_linkmap_self();
	const char *own = self ? self->l_name : "";
	const char *slash = strrchr(own, '/');
	const size_t n = slash ? (size_t)(slash + 1 - own) : 0;
	const char *text = "is not looked for: its path is too long";

	if (n > SP_PEER_WHY_BYTES / 2) {
		strcpy(why, name);
	} else {
		memcpy(why, own, n);
		memcpy(why + n, name, sizeof(name));
		text = sp_peer_init(why, most);
	}
	if (text)
		strcpy(stpcpy(why + strlen(why), " "), text);
	return !text;
}
