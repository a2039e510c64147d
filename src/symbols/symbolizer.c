/* SPDX-License-Identifier: MIT */
#include "symbols/symbolizer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/blocks.h"
#include "base/hash.h"
#include "base/index.h"
#include "model/profile.h"
#include "symbols/debuginfo.h"
#include "symbols/debuginfod.h"
#include "symbols/demangle.h"
#include "symbols/home.h"
#include "symbols/images.h"
#include "symbols/jitmap.h"
#include "symbols/plainname.h"

/* A file of the profile. */
struct image {
	const struct sp_image *file;
	bool is_needed;     /* some address has no name without it */
	bool lacks_inlined; /* nor had who put names into the profile */
};

/* The names of a function, which recur at each of its addresses. */
struct name {
	const struct sp_module *module; /* NULL: none */
	/* As in the file or in the profile; NULL: it has none, but begins
	 * at that address. */
	const char *raw;
	uint64_t address;            /* or that of the home */
	const char *file;            /* of the home, or NULL */
	const char *full, *function; /* of struct sp_symbol */
	enum sp_role role;
};

/* The key and the result of a lookup. */
struct entry {
	struct sp_frame frame;
	bool is_return_address;
	struct sp_symbols result;
};

struct sp_symbolizer {
	const struct sp_profile *profile;
	struct sp_symbolizer_options options;
	struct sp_see_through *see_through;
	struct sp_images *images_owned; /* NULL: they are the options' */
	struct image **images;
	size_t n_images;
	struct image **module_images; /* by index of the profile's modules */
	struct sp_symbol_cache_key *module_keys; /* likewise; 0: not asked */
	struct sp_index index;                   /* of entries */
	struct entry *entries;
	size_t n_entries, entries_room;
	struct sp_index name_index; /* of names, by their addresses in memory */
	struct name *names;
	size_t n_names, names_room;
	size_t n_named;       /* entries with a name */
	size_t n_embedded;    /* of these, with one that the profile brought */
	struct sp_jitmap jit; /* once a frame was in no module */
	bool has_jit;
	struct sp_blocks storage;
};

/* The result of lookups if memory is short. */
static const struct sp_symbol unknown = {
	.function = "[out of memory]",
	.is_fallback = true,
};

/* Code that the program made, in no file. */
static const struct sp_module jit_module = {.path = "[jit]"};

int sp_symbolizer_new(const struct sp_profile *profile,
		      const struct sp_symbolizer_options *options,
		      struct sp_symbolizer **ret_symbolizer,
		      struct sp_error *err)
{
	int r = options->use_debuginfod ? sp_debuginfod_check(err) : 0;
	struct sp_symbolizer *s;

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return sp_error_set(err, -ENOMEM, profile->path,
				    "out of memory");
	s->profile = profile;
	s->options = *options;
	if (!options->images)
		s->options.images = s->images_owned = sp_images_new(options);
	s->module_images =
		calloc(profile->n_modules + 1, sizeof(*s->module_images));
	if (options->cache)
		s->module_keys =
			calloc(profile->n_modules + 1, sizeof(*s->module_keys));
	if (!s->options.images || !s->module_images ||
	    (options->cache && !s->module_keys)) {
		sp_symbolizer_free(s);
		return sp_error_set(err, -ENOMEM, profile->path,
				    "out of memory");
	}
	r = sp_see_through_new(&options->see_through, &s->see_through, err);
	if (r < 0) {
		sp_symbolizer_free(s);
		return r;
	}
	*ret_symbolizer = s;
	return 0;
}

void sp_symbolizer_free(struct sp_symbolizer *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_images; i++)
		free(s->images[i]);
	sp_images_free(s->images_owned);
	sp_jitmap_done(&s->jit);
	sp_see_through_free(s->see_through);
	sp_blocks_free(&s->storage);
	free(s->images);
	free(s->module_images);
	free(s->module_keys);
	sp_index_done(&s->index);
	free(s->entries);
	sp_index_done(&s->name_index);
	free(s->names);
	free(s);
}

static struct image *image_of(struct sp_symbolizer *s,
			      const struct sp_module *module)
{
	struct image **slot = &s->module_images[module - s->profile->modules];
	const struct sp_image *file;
	struct image **grown;
	struct image *image;

	if (*slot)
		/* cppcheck-suppress identicalInnerCondition ; the pointer */
		return *slot;
	file = sp_callsite_check(sp_images_get(s->options.images, module),
				 s->profile, module);
	for (size_t i = 0; i < s->n_images && file && !*slot; i++)
		if (s->images[i]->file == file)
			*slot = s->images[i];
	if (*slot || !file)
		return *slot;
	grown = reallocarray(s->images, s->n_images + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	s->images = grown;
	image = calloc(1, sizeof(*image));
	if (!image)
		return NULL;
	image->file = file;
	s->images[s->n_images++] = image;
	*slot = image;
	return image;
}

void sp_symbolizer_problems(const struct sp_symbolizer *s,
			    sp_symbolizer_module_fn *fn, void *arg)
{
	for (size_t i = 0; i < s->profile->n_modules; i++) {
		const struct image *image = s->module_images[i];

		if (image && image->is_needed && image->file->reason[0])
			fn(arg, &s->profile->modules[i], image->file->reason);
	}
	if (s->jit.problem[0])
		fn(arg, &jit_module, s->jit.problem);
}

void sp_symbolizer_lacks(const struct sp_symbolizer *s,
			 sp_symbolizer_module_fn *fn, void *arg)
{
	for (size_t i = 0; i < s->profile->n_modules; i++) {
		const struct image *image = s->module_images[i];

		if (image && image->file->info &&
		    sp_debuginfo_lack(image->file->info)[0])
			fn(arg, &s->profile->modules[i],
			   sp_debuginfo_lack(image->file->info));
		else if (image && image->lacks_inlined && !image->file->info)
			fn(arg, &s->profile->modules[i],
			   "whose inlined functions are missing: their *.dwo "
			   "files were not there when its names were read");
	}
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "libz.so.1+0x2a40". */
static const char *fallback_name(struct sp_symbolizer *s,
				 const struct sp_module *module,
				 uint64_t address)
{
	const char *name = "[anonymous]";
	char buf[512];

	if (module && module->path[0])
		name = base_name(module->path);
	snprintf(buf, sizeof(buf), "%.400s+0x%" PRIx64, name, address);
	return sp_blocks_text(&s->storage, buf, strlen(buf));
}

/* The same without its home; NULL if memory is short. */
static const char *scoped_name(struct sp_symbolizer *s, const char *raw)
{
	char *demangled = sp_demangle(raw);
	size_t version = strcspn(raw, "@");
	const char *name = raw;

	if (demangled) {
		name = sp_blocks_text(&s->storage, demangled,
				      strlen(demangled));
	} else if (version && raw[version]) {
		/* "malloc@@GLIBC_2.2.5" */
		name = sp_blocks_text(&s->storage, raw, version);
	}
	free(demangled);
	return name;
}

/* All of the function's name; NULL if memory is short. */
static const char *full_name(struct sp_symbolizer *s, const struct name *name)
{
	const char *full = name->full ? name->full : scoped_name(s, name->raw);
	const bool is_new = !name->full && (name->file || name->address);
	struct sp_home home;
	char *joined;

	if (full && is_new) {
		joined = sp_home_join(full, name->file, name->address);
		full = joined ? sp_blocks_text(&s->storage, joined,
					       strlen(joined))
			      : NULL;
		free(joined);
	}
	home = sp_home_of(full ? full : "");
	if (home.file_bytes == home.bytes ||
	    !sp_profile_has_builds(s->profile, name->module))
		return full;
	joined = sp_home_without_address(full);
	full = joined ? sp_blocks_text(&s->storage, joined, strlen(joined))
		      : NULL;
	free(joined);
	return full;
}

/* The function's name as people read it; NULL if memory is short. */
static const char *display_name(struct sp_symbolizer *s, const char *full)
{
	char *plain = s->options.full_names ? sp_home_without(full)
					    : sp_plain_name(full, false);
	const char *name = NULL;

	if (plain)
		name = sp_blocks_text(&s->storage, plain,
				      sp_demangle_short(plain));
	free(plain);
	return name;
}

static enum sp_role role_of(const struct sp_symbolizer *s,
			    const struct sp_module *module,
			    const struct sp_symbol *symbol)
{
	return sp_see_through_role(
		s->see_through,
		module && !module->is_main ? base_name(module->path) : "",
		symbol->identity ? symbol->identity : symbol->function);
}

/* Where it is, or where to insert it. */
static struct sp_index_probe find_name(const struct sp_symbolizer *s,
				       const struct name *name,
				       const struct name **ret)
{
	uint64_t h =
		sp_hash_word((uintptr_t)name->module, (uintptr_t)name->raw);
	struct sp_index_probe probe =
		sp_index_begin(sp_hash_word(h, name->address));

	*ret = NULL;
	while (!*ret && sp_index_next(&s->name_index, &probe)) {
		const struct name *n = &s->names[probe.position];

		if (n->raw == name->raw && n->address == name->address &&
		    n->module == name->module &&
		    !strcmp(n->file ? n->file : "",
			    name->file ? name->file : ""))
			*ret = n;
	}
	return probe;
}

/* Give the symbol the name that has module, raw or address, and with raw text
 * that is all of the name `full`.  Texts live as long as the symbolizer.  False
 * if memory is short. */
static bool give_name(struct sp_symbolizer *s, struct name name,
		      struct sp_symbol *symbol)
{
	struct sp_index_probe probe;
	const struct name *known;

	if (sp_index_reserve(&s->name_index) < 0 ||
	    sp_array_reserve((void **)&s->names, &s->names_room, s->n_names,
			     sizeof(*s->names)))
		return false;
	probe = find_name(s, &name, &known);
	if (known)
		name = *known;
	else if (!name.raw)
		name.function = fallback_name(s, name.module, name.address);
	else if ((name.full = full_name(s, &name)))
		name.function = display_name(s, name.full);
	symbol->function = name.function;
	symbol->identity = name.full;
	if (known || !name.function) {
		symbol->role = name.role;
		return known;
	}
	symbol->role = name.role = role_of(s, name.module, symbol);
	sp_index_put(&s->name_index, &probe, s->n_names);
	s->names[s->n_names++] = name;
	return true;
}

/* The path of the source file; NULL also if memory is short. */
static const char *source_path(struct sp_symbolizer *s,
			       const struct sp_location *location)
{
	const char *path;
	char *joined;

	if (!location->directory)
		return location->file;
	if (asprintf(&joined, "%s/%s", location->directory, location->file) < 0)
		return NULL;
	path = sp_blocks_text(&s->storage, joined, strlen(joined));
	free(joined);
	return path;
}

/* The runtime's name for generated code, in *ret; false: none.  With several
 * processes it is unknown whose address it is. */
static bool symbolize_jit(struct sp_symbolizer *s, uint64_t address,
			  struct sp_symbol *ret)
{
	struct sp_jit_symbol found;

	if (s->profile->n_parts > 1)
		return false;
	if (!s->has_jit && sp_jitmap_open(&s->jit, s->profile) < 0)
		sp_jitmap_done(&s->jit);
	s->has_jit = true;
	if (!sp_jitmap_find(&s->jit, address, &found))
		return false;
	*ret = (struct sp_symbol){.function = found.function,
				  .file = found.file,
				  .line = found.line};
	ret->role = role_of(s, NULL, ret);
	if (found.is_reused) {
		char buf[512];

		snprintf(buf, sizeof(buf), "%.450s [reused]", found.function);
		ret->function = sp_blocks_text(&s->storage, buf, strlen(buf));
	}
	if (ret->function && ret->file) {
		char *full = sp_home_join(ret->function, ret->file, 0);

		ret->identity =
			full ? sp_blocks_text(&s->storage, full, strlen(full))
			     : NULL;
		free(full);
	}
	return ret->function != NULL;
}

/*
 * `address` is shown, in the module's own virtual addresses; `lookup_address`
 * is the same or the byte before.
 */
static struct sp_symbols symbolize_address(struct sp_symbolizer *s,
					   const struct sp_module *module,
					   uint64_t address,
					   uint64_t lookup_address)
{
	const struct sp_symbols failed = {&unknown, 1};
	struct sp_location locations[SP_LOCATION_MAX] = {{0}};
	struct sp_symbol symbols[SP_LOCATION_MAX];
	const struct image *mine = module ? image_of(s, module) : NULL;
	const struct sp_image *image = mine ? mine->file : NULL;
	struct sp_symbol *kept;
	struct name name;
	size_t i, n = 1;

	if (image && image->info)
		n = sp_debuginfo_lookup(image->info, lookup_address, locations);
	else if (!module && symbolize_jit(s, lookup_address, symbols))
		n = 0;
	for (i = 0; i < n; i++) {
		const struct sp_location *location = &locations[i];
		struct sp_symbol *symbol = &symbols[i];

		*symbol = (struct sp_symbol){
			.file = source_path(s, location),
			.line = location->line,
			.is_inlined = location->is_inlined,
			.is_clone = location->is_clone,
			.lacks_inlined = location->lacks_inlined,
			.is_fallback = !location->function,
		};
		/* Where the function begins, so that its call sites are one. */
		if (symbol->is_fallback && image && image->info)
			sp_debuginfo_function_start(image->info, lookup_address,
						    &address);
		name = (struct name){.module = module,
				     .raw = location->function,
				     .address = address,
				     .file = location->home.file};
		if (name.raw)
			name.address = location->home.address;
		if (!give_name(s, name, symbol))
			return failed;
	}
	if (n && image && image->info && address != lookup_address)
		symbols->calls_wrapper = sp_callsite_is_wrapper(
			image->info, s->see_through, base_name(module->path),
			lookup_address + 1);
	n += !n;
	kept = sp_blocks_copy(&s->storage, symbols, n * sizeof(*symbols));
	return kept ? (struct sp_symbols){kept, n} : failed;
}

static struct sp_symbols symbolize_cached(struct sp_symbolizer *s,
					  const struct sp_module *module,
					  uint64_t address,
					  uint64_t lookup_address)
{
	struct sp_symbol_cache *cache = s->options.cache;
	struct sp_symbol_cache_key *key;
	struct sp_symbols found;

	if (!cache || !module || !module->build_id_len)
		return symbolize_address(s, module, address, lookup_address);
	key = &s->module_keys[module - s->profile->modules];
	if (!key->module)
		key->module = sp_symbol_cache_module(cache, module);
	key->address = address;
	key->is_return_address = address != lookup_address;
	if (key->module && sp_symbol_cache_find(cache, *key, &found)) {
		if (!s->images_owned)
			image_of(s, module);
		return found;
	}
	found = symbolize_address(s, module, address, lookup_address);
	if (key->module && found.symbol != &unknown)
		sp_symbol_cache_put(cache, *key, &found);
	return found;
}

/* Those that the profile brought, as they are called here. */
static struct sp_symbols rename_embedded(struct sp_symbolizer *s,
					 const struct sp_module *module,
					 struct sp_symbols embedded)
{
	struct sp_symbol *kept =
		sp_blocks_copy(&s->storage, embedded.symbol,
			       embedded.count * sizeof(*embedded.symbol));

	for (size_t i = 0; kept && i < embedded.count; i++)
		if (!give_name(s,
			       (struct name){.module = module,
					     .raw = kept[i].identity,
					     .full = kept[i].identity},
			       &kept[i]))
			return (struct sp_symbols){&unknown, 1};
	return kept ? (struct sp_symbols){kept, embedded.count}
		    : (struct sp_symbols){&unknown, 1};
}

const struct sp_symbolizer_options *sp_symbolizer_options_of(
	const struct sp_symbolizer *s)
{
	return &s->options;
}

static bool has_line(const struct sp_symbols *symbols)
{
	return !symbols->symbol->is_fallback && symbols->symbol->file;
}

/* Symbols in the profile are only as good as those of the machine that made
 * them.  Names without lines, or that may lack inlined functions, are looked up
 * here, too, because debug files may have been installed since. */
static struct sp_symbols choose_symbols(struct sp_symbolizer *s,
					const struct sp_module *module,
					uint64_t address,
					uint64_t lookup_address,
					const struct sp_symbols *embedded)
{
	const bool is_named = embedded && !embedded->symbol->is_fallback;
	struct sp_symbols here;
	struct image *image;

	if (is_named &&
	    (!module ||
	     (has_line(embedded) && !embedded->symbol->lacks_inlined &&
	      !(s->options.prefers_files && module->build_id_len)))) {
		s->n_embedded++;
		return rename_embedded(s, module, *embedded);
	}
	here = symbolize_cached(s, module, address, lookup_address);
	image = module ? s->module_images[module - s->profile->modules] : NULL;
	if (image) {
		image->is_needed |= !is_named;
		image->lacks_inlined |=
			is_named && embedded->symbol->lacks_inlined;
	}
	/* Of a function without a name they may say more: where it begins, if
	 * the file is gone, and what it calls. */
	if (embedded && !is_named && here.symbol->is_fallback)
		return rename_embedded(s, module, *embedded);
	if (!is_named || has_line(&here))
		return here;
	s->n_embedded++;
	return rename_embedded(s, module, *embedded);
}

/* A frame that was not asked for before. */
static struct sp_symbols add_entry(struct sp_symbolizer *s,
				   struct sp_frame frame,
				   bool is_return_address,
				   struct sp_index_probe probe)
{
	const struct sp_module *module =
		sp_profile_module(s->profile, frame.module);
	const struct sp_embedded_frame *embedded;
	uint64_t address = frame.offset, lookup_address;
	struct entry *entry;

	if (sp_array_reserve((void **)&s->entries, &s->entries_room,
			     s->n_entries, sizeof(*s->entries)))
		return (struct sp_symbols){&unknown, 1};
	if (module)
		address += module->start_pc - module->bias;
	/* The byte before the first belongs to something else. */
	lookup_address = address - (is_return_address && frame.offset);
	sp_index_put(&s->index, &probe, s->n_entries);
	entry = &s->entries[s->n_entries++];
	*entry = (struct entry){frame, is_return_address, {NULL, 0}};
	embedded =
		is_return_address ? sp_embedded_find(s->profile, frame) : NULL;
	entry->result = choose_symbols(s, module, address, lookup_address,
				       embedded ? &embedded->symbols : NULL);
	s->n_named += !entry->result.symbol->is_fallback;
	return entry->result;
}

struct sp_symbols sp_symbolizer_lookup(struct sp_symbolizer *s,
				       struct sp_frame frame,
				       bool is_return_address)
{
	struct sp_index_probe probe = sp_index_begin(sp_hash_word(
		sp_hash_word(frame.module, frame.offset), is_return_address));

	if (sp_index_reserve(&s->index) < 0)
		return (struct sp_symbols){&unknown, 1};
	while (sp_index_next(&s->index, &probe)) {
		const struct entry *entry = &s->entries[probe.position];

		if (entry->frame.module == frame.module &&
		    entry->frame.offset == frame.offset &&
		    entry->is_return_address == is_return_address)
			return entry->result;
	}
	return add_entry(s, frame, is_return_address, probe);
}

void sp_symbolizer_count(const struct sp_symbolizer *s, size_t *ret_named,
			 size_t *ret_embedded)
{
	*ret_named = s->n_named;
	*ret_embedded = s->n_embedded;
}
