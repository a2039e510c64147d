/* SPDX-License-Identifier: MIT */
/*
 * A hash table of sets of two.
 *
 * I1  An entry is two words, of which one is the rule and the other the address
 *     exclusive-or the rule's bits, spread over the whole word.  A thread that
 *     reads a mixture of two entries finds no address at all, so that entries
 *     are stored without any order or lock.
 * I2  A table is published (release) when it has everything that its
 * predecessor had; a replaced table stays mapped, since a thread may be reading
 * it.
 */
#include "agent/unwind/rules.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/sys/sys.h"
#include "base/hash.h"

#include "agent/sys/poison.h"

#define SLOTS_MIN 1024u
#define SLOTS_MAX 65536u
#define EPOCHS    4095u

struct slot {
	_Atomic uint64_t mixed; /* mix_rule() of the rule and the address */
	_Atomic uint64_t rule;  /* never 0 in use */
};

struct table {
	uint64_t n_slots; /* a power of two */
	_Atomic uint64_t used;
	struct slot slots[];
};

/* A rule in a word. */
struct packed {
	uint64_t bytes : 48; /* sp_arch_pack() */
	uint64_t kind : 3;   /* SP_CFI_UNKNOWN: none */
	uint64_t is_exact : 1;
	uint64_t epoch : 12; /* modules known then; 0: at any time */
};

static_assert(sizeof(struct packed) == sizeof(uint64_t), "one word");

static _Atomic(struct table *) current;

/* Never 0. */
static uint16_t epoch_now(void)
{
	return (1 + sp_modules_count() % EPOCHS) & 0xfffu;
}

static uint64_t pack_rule(const struct sp_cfi_rule *rule, bool is_permanent)
{
	struct packed p = {
		.bytes = sp_arch_pack(rule->cfa_bytes, rule->bp_bytes,
				      rule->pc_bytes) &
			 0xffffffffffffull,
		.kind = rule->kind & 7u,
		.is_exact = rule->is_exact,
		.epoch = is_permanent ? 0 : epoch_now(),
	};
	uint64_t word;

	memcpy(&word, &p, sizeof(word));
	return word;
}

/* The address of a rule and its mixed word, and the other way round.  Two rules
 * differ in a few low bits: as they are, they would make one address of code
 * into another. */
static inline uint64_t mix_rule(uint64_t rule, uint64_t word)
{
	return rule * SP_HASH_MULTIPLIER ^ word;
}

/* The first of the two slots of an address. */
static struct slot *set_of(struct table *t, uintptr_t pc)
{
	uint64_t hash = (pc * SP_HASH_MULTIPLIER) >> 32;

	return &t->slots[hash & (t->n_slots - 1) & ~1ull];
}

static uint64_t find_word(struct table *t, uintptr_t pc)
{
	struct slot *set = set_of(t, pc);

	for (int i = 0; i < 2; i++) {
		uint64_t rule = atomic_load_explicit(&set[i].rule,
						     memory_order_relaxed);
		uint64_t mixed = atomic_load_explicit(&set[i].mixed,
						      memory_order_relaxed);

		if (mix_rule(rule, mixed) == pc)
			return rule;
	}
	return 0;
}

/* Not inlined: most rules are of objects that stay, and found without. */
static __attribute__((noinline)) bool check_epoch(uint16_t epoch,
						  struct sp_cfi_rule *ret)
{
	if (epoch == epoch_now())
		return true;
	ret->kind = SP_CFI_UNKNOWN;
	return false;
}

bool sp_rules_find(uintptr_t pc, struct sp_cfi_rule *ret)
{
	struct table *t = atomic_load_explicit(&current, memory_order_acquire);
	uint64_t word = t ? find_word(t, pc) : 0;
	struct packed p;

	memcpy(&p, &word, sizeof(p));
	ret->kind = p.kind;
	if (!p.kind)
		return false;
	ret->is_exact = p.is_exact;
	sp_arch_unpack(word, &ret->cfa_bytes, &ret->bp_bytes, &ret->pc_bytes);
	return !p.epoch || check_epoch(p.epoch, ret);
}

static void put_rule(struct table *t, uintptr_t pc, uint64_t rule)
{
	struct slot *set = set_of(t, pc), *slot = &set[1];

	for (int i = 0; i < 2; i++) {
		uint64_t old = atomic_load_explicit(&set[i].rule,
						    memory_order_relaxed);
		uint64_t mixed = atomic_load_explicit(&set[i].mixed,
						      memory_order_relaxed);

		if (old && mix_rule(old, mixed) != pc)
			continue;
		if (!old)
			atomic_fetch_add_explicit(&t->used, 1,
						  memory_order_relaxed);
		slot = &set[i];
		break;
	}
	atomic_store_explicit(&slot->rule, rule, memory_order_relaxed);
	atomic_store_explicit(&slot->mixed, mix_rule(rule, pc),
			      memory_order_relaxed);
}

static size_t table_bytes(uint64_t n_slots)
{
	return sizeof(struct table) + n_slots * sizeof(struct slot);
}

/* Four times as large, or the first; the present one if there is no memory. */
static struct table *grow_table(struct table *old)
{
	uint64_t n_slots = old ? old->n_slots * 4 : SLOTS_MIN;
	struct table *t = sp_sys_map(table_bytes(n_slots));

	if (!t)
		return old;
	t->n_slots = n_slots;
	for (uint64_t i = 0; old && i < old->n_slots; i++) {
		const struct slot *s = &old->slots[i];
		uint64_t rule =
			atomic_load_explicit(&s->rule, memory_order_relaxed);
		uint64_t mixed =
			atomic_load_explicit(&s->mixed, memory_order_relaxed);

		if (rule)
			put_rule(t, mix_rule(rule, mixed), rule);
	}
	if (atomic_compare_exchange_strong_explicit(&current, &old, t,
						    memory_order_acq_rel,
						    memory_order_acquire))
		return t;
	sp_sys_unmap(t, table_bytes(n_slots));
	return old;
}

void sp_rules_add(uintptr_t pc, const struct sp_cfi_rule *rule,
		  bool is_permanent)
{
	struct table *t = atomic_load_explicit(&current, memory_order_acquire);

	if (!t || (t->n_slots < SLOTS_MAX &&
		   atomic_load_explicit(&t->used, memory_order_relaxed) >
			   t->n_slots / 2))
		t = grow_table(t);
	if (t)
		put_rule(t, pc, pack_rule(rule, is_permanent));
}
