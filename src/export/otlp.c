/* SPDX-License-Identifier: MIT */
/*
 * A message of OpenTelemetry's profiles signal (opentelemetry-proto 1.11,
 * profiles.proto v1development): one process, a profile for each sample type,
 * and the dictionary that they share, which comes last.  Each of its tables
 * begins with an empty entry, and an index of 0 means that there is none.
 */
#include "export/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "export/code.h"
#include "export/otlp.h"
#include "export/proto.h"
#include "export/rows.h"
#include "stats/estimate.h"
#include "text/figures.h"
#include "text/lack.h"
#include "text/text.h"

#define PROFILE_ID_BYTES 16

struct writer {
	const struct sp_profile *profile;
	const struct sp_export_options *options;
	const struct sp_export_rows *rows;
	struct sp_code code;
	struct sp_intern attributes; /* encoded KeyValueAndUnit */
	struct sp_proto out;         /* ProfilesData */
	struct sp_proto inner, innermost, value;
};

/* ---- attributes ---- */

static void put_text(struct sp_proto *any, const char *text)
{
	sp_proto_bytes(any, OTLP_ANY_STRING, text, strlen(text));
}

static void put_double(struct sp_proto *any, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	sp_proto_fixed64(any, OTLP_ANY_DOUBLE, bits);
}

/* The index of an attribute of the dictionary, whose value is w->value. */
static uint64_t attribute(struct writer *w, const char *key, const char *unit)
{
	struct sp_proto entry = {0};
	uint32_t number = 0;

	sp_proto_uint(&entry, OTLP_ATTRIBUTE_KEY,
		      sp_code_string(&w->code, key));
	sp_proto_message(&entry, OTLP_ATTRIBUTE_VALUE, &w->value);
	sp_proto_uint(&entry, OTLP_ATTRIBUTE_UNIT,
		      sp_code_string(&w->code, unit));
	if (entry.failed ||
	    sp_intern_add(&w->attributes, entry.bytes, entry.n, &number) < 0)
		w->code.failed = true;
	sp_proto_done(&entry);
	return 1 + (uint64_t)number;
}

static void put_build_id(void *arg, struct sp_proto *mapping,
			 const char *build_id)
{
	struct writer *w = arg;
	uint64_t index;

	if (!*build_id)
		return;
	put_text(&w->value, build_id);
	index = attribute(w, "process.executable.build_id.gnu", "");
	sp_proto_packed(mapping, OTLP_MAPPING_ATTRIBUTES, &index, 1);
}

/* The same for text. */
static uint64_t text_attribute(struct writer *w, const char *key,
			       const char *text)
{
	put_text(&w->value, text);
	return attribute(w, key, "");
}

/* ---- the process ---- */

/* Add a fact to the resource, which is `inner`; its value is w->value. */
static void put_fact(struct writer *w, const char *key)
{
	sp_proto_bytes(&w->innermost, OTLP_KEY_VALUE_KEY, key, strlen(key));
	sp_proto_message(&w->innermost, OTLP_KEY_VALUE_VALUE, &w->value);
	sp_proto_message(&w->inner, OTLP_RESOURCE_ATTRIBUTES, &w->innermost);
}

static void put_text_fact(struct writer *w, const char *key,
			  const char *untrusted)
{
	char *text = untrusted ? sp_code_clean(&w->code, untrusted) : NULL;

	if (text && *text) {
		put_text(&w->value, text);
		put_fact(w, key);
	}
	free(text);
}

/* What OpenTelemetry calls that label. */
static const char *key_of_label(const char *label)
{
	static const char *const keys[][2] = {
		{"service", "service.name"},
		{"service_name", "service.name"},
		{"version", "service.version"},
		{"environment", "deployment.environment.name"},
		{"namespace", "k8s.namespace.name"},
		{"pod", "k8s.pod.name"},
		{"node", "k8s.node.name"},
		{"deployment", "k8s.deployment.name"},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (strcmp(label, keys[i][0]) == 0)
			return keys[i][1];
	return label;
}

/* Labels may not say something else of what is known. */
static bool is_known(const char *key)
{
	return strcmp(key, "host.name") == 0 ||
	       strcmp(key, "container.id") == 0 ||
	       strncmp(key, "process.", 8) == 0;
}

/* Does a label before the n-th have that key? */
static bool is_there(const struct sp_profile *p, size_t n, const char *key)
{
	const char *value;

	for (size_t i = 0; i < n; i++)
		if (strcmp(key_of_label(sp_profile_label(p, i, &value)), key) ==
		    0)
			return true;
	return false;
}

/* Of several processes what they have in common, as their facts are. */
static void put_resource(struct writer *w, struct sp_proto *to)
{
	const struct sp_profile *p = w->profile;
	const bool is_one = p->n_parts <= 1;
	const char *exe = is_one ? p->program : sp_profile_info(p, "exe");
	const char *label, *value;
	size_t n = 0;

	for (; (label = sp_profile_label(p, n, &value)); n++) {
		const char *key = key_of_label(label);

		if (!is_known(key) && !is_there(p, n, key))
			put_text_fact(w, key, value);
	}
	if (!is_there(p, n, "service.name"))
		put_text_fact(w, "service.name",
			      exe ? sp_text_base_name(exe) : "unknown_service");
	put_text_fact(w, "host.name",
		      is_one ? p->host : sp_profile_info(p, "host"));
	put_text_fact(w, "container.id", sp_profile_info(p, "container"));
	if (is_one) {
		sp_proto_uint(&w->value, OTLP_ANY_INT, p->pid);
		put_fact(w, "process.pid");
	}
	if (exe)
		put_text_fact(w, "process.executable.name",
			      sp_text_base_name(exe));
	put_text_fact(w, "process.executable.path", exe);
	sp_proto_message(to, OTLP_RESOURCES_RESOURCE, &w->inner);
}

/* ---- a profile ---- */

static void put_type(struct writer *w, struct sp_proto *profile,
		     unsigned int field, const char *name, const char *unit)
{
	sp_proto_uint(&w->inner, OTLP_TYPE_NAME,
		      sp_code_string(&w->code, name));
	sp_proto_uint(&w->inner, OTLP_TYPE_UNIT,
		      sp_code_string(&w->code, unit));
	sp_proto_message(profile, field, &w->inner);
}

/* Samples whose value is 0 are left out. */
static void put_samples(struct writer *w, struct sp_proto *profile, size_t type)
{
	const struct sp_row *rows = w->rows->rows;
	uint64_t values[SP_ROW_TYPES_MAX], stack = 0, index;

	for (size_t i = 0; i < w->rows->n_rows && !w->code.failed; i++) {
		stack += !i || rows[i].stack != rows[i - 1].stack;
		sp_export_rows_values(w->rows, i, values);
		if (!values[type])
			continue;
		sp_proto_uint(&w->inner, OTLP_SAMPLE_STACK, stack);
		if (rows[i].size_bytes) {
			sp_proto_uint(&w->value, OTLP_ANY_INT,
				      rows[i].size_bytes);
			index = attribute(w, "allocation_size", "By");
			sp_proto_packed(&w->inner, OTLP_SAMPLE_ATTRIBUTES,
					&index, 1);
		}
		sp_proto_packed(&w->inner, OTLP_SAMPLE_VALUES, &values[type],
				1);
		sp_proto_message(profile, OTLP_PROFILE_SAMPLES, &w->inner);
	}
}

/* A figure as it stands in the report's JSON. */
static uint64_t bytes_attribute(struct writer *w, const char *key,
				const char *digits)
{
	put_double(&w->value, strtod(digits, NULL));
	return attribute(w, key, "By");
}

static uint64_t lack_attribute(struct writer *w, const struct sp_whole *whole)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	uint64_t index = 0;

	if (out)
		sp_lack_print(out, whole);
	if (out && fclose(out) == 0)
		index = text_attribute(w, "sampleprof.incomplete", text);
	else
		w->code.failed = true;
	free(text);
	return index;
}

/* Bytes of the view; there is a type of them. */
static enum sp_row_figure figure_of_view(const struct writer *w)
{
	return w->rows->is_of_inuse && w->profile->has_frees
		       ? SP_ROW_INUSE_BYTES
		       : SP_ROW_ALLOC_BYTES;
}

/* What is known of the sum of the values.  A part has other sums. */
static void put_attributes(struct writer *w, struct sp_proto *profile,
			   enum sp_row_figure figure)
{
	const struct sp_analysis *a = w->code.aggregate->analysis;
	const struct sp_whole whole = sp_whole_of(w->profile);
	uint64_t indices[8];
	size_t n = 0;

	if (figure == figure_of_view(w) && !w->options->part) {
		const struct sp_figure_limits of = sp_figure_limits(
			sp_estimate_bytes(&a->how, &a->view->all));

		indices[n++] = text_attribute(w, "sampleprof.view",
					      sp_view_name(a->selection.view));
		indices[n++] =
			bytes_attribute(w, "sampleprof.sum.low", of.lo.text);
		indices[n++] =
			bytes_attribute(w, "sampleprof.sum.high", of.hi.text);
		indices[n++] = bytes_attribute(
			w, "sampleprof.sum.half_width",
			sp_figure_digits((strtod(of.hi.text, NULL) -
					  strtod(of.lo.text, NULL)) /
					 2)
				.text);
		put_double(&w->value, a->how.confidence);
		indices[n++] = attribute(w, "sampleprof.confidence", "1");
	}
	if (!sp_whole_is_all(&whole))
		indices[n++] = lack_attribute(w, &whole);
	if (n)
		sp_proto_packed(profile, OTLP_PROFILE_ATTRIBUTES, indices, n);
}

/* Another one for each process, type and part. */
static void put_id(const struct writer *w, struct sp_proto *profile,
		   uint64_t type, uint64_t from_ns, uint64_t duration_ns)
{
	uint64_t words[PROFILE_ID_BYTES / 8];
	uint64_t hash = sp_hash_word(w->rows->seed, w->profile->file_id);

	hash = sp_hash_word(hash, type);
	hash = sp_hash_word(hash, from_ns);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		words[i] = hash = sp_hash_word(hash, duration_ns + i);
	sp_proto_bytes(profile, OTLP_PROFILE_ID, words, sizeof(words));
}

static void put_profile(struct writer *w, struct sp_proto *scopes, size_t type)
{
	const struct sp_export_part *part = w->options->part;
	const struct sp_profile *p = w->profile;
	const uint64_t from_ns = part ? part->start_unix_ns : p->start_unix_ns;
	const uint64_t duration_ns = part ? part->duration_ns : p->duration_ns;
	struct sp_proto profile = {0};

	put_type(w, &profile, OTLP_PROFILE_TYPE, w->rows->types[type].name,
		 w->rows->types[type].unit);
	put_samples(w, &profile, type);
	sp_proto_fixed64(&profile, OTLP_PROFILE_TIME, from_ns);
	sp_proto_uint(&profile, OTLP_PROFILE_DURATION, duration_ns);
	put_type(w, &profile, OTLP_PROFILE_PERIOD_TYPE, "space", "bytes");
	sp_proto_uint(&profile, OTLP_PROFILE_PERIOD, p->period_bytes);
	put_id(w, &profile, type, from_ns, duration_ns);
	put_attributes(w, &profile, w->rows->types[type].figure);
	sp_proto_message(scopes, OTLP_SCOPES_PROFILES, &profile);
	sp_proto_done(&profile);
}

/* ---- the dictionary ---- */

static void put_stacks(struct writer *w, struct sp_proto *dictionary)
{
	const struct sp_row *rows = w->rows->rows;
	uint64_t ids[SP_FORMAT_FRAMES_MAX];

	sp_proto_bytes(dictionary, OTLP_DICTIONARY_STACKS, "", 0);
	for (size_t i = 0; i < w->rows->n_rows && !w->code.failed; i++) {
		if (i && rows[i].stack == rows[i - 1].stack)
			continue;
		sp_proto_packed(
			&w->inner, OTLP_STACK_LOCATIONS, ids,
			sp_code_locations(&w->code, rows[i].stack, ids));
		sp_proto_message(dictionary, OTLP_DICTIONARY_STACKS, &w->inner);
	}
}

/* There are no links but the empty one. */
static void put_no_link(struct writer *w, struct sp_proto *dictionary)
{
	static const uint8_t zeros[16];

	sp_proto_bytes(&w->inner, OTLP_LINK_TRACE, zeros, 16);
	sp_proto_bytes(&w->inner, OTLP_LINK_SPAN, zeros, 8);
	sp_proto_message(dictionary, OTLP_DICTIONARY_LINKS, &w->inner);
}

static void put_dictionary(struct writer *w)
{
	const struct sp_code_dialect dialect = {
		.mapping = OTLP_DICTIONARY_MAPPINGS,
		.location = OTLP_DICTIONARY_LOCATIONS,
		.function = OTLP_DICTIONARY_FUNCTIONS,
		.string = OTLP_DICTIONARY_STRINGS,
		.put_build_id = put_build_id,
		.arg = w,
	};
	struct sp_proto dictionary = {0};

	put_stacks(w, &dictionary);
	put_no_link(w, &dictionary);
	sp_code_write(&w->code, &dictionary, &dialect);
	sp_proto_bytes(&dictionary, OTLP_DICTIONARY_ATTRIBUTES, "", 0);
	for (uint32_t i = 0; i < w->attributes.n_entries; i++)
		sp_proto_bytes(&dictionary, OTLP_DICTIONARY_ATTRIBUTES,
			       sp_intern_bytes(&w->attributes, i),
			       w->attributes.entries[i].length);
	sp_code_write_strings(&w->code, &dictionary, &dialect);
	sp_proto_message(&w->out, OTLP_DATA_DICTIONARY, &dictionary);
	sp_proto_done(&dictionary);
}

/* The bytes of the view come first: that profile is shown if nothing else is
 * asked for. */
static void put_data(struct writer *w)
{
	struct sp_proto resources = {0}, scopes = {0};
	size_t first = 0;

	while (w->rows->types[first].figure != figure_of_view(w))
		first++;

	put_resource(w, &resources);
	sp_proto_bytes(&w->inner, OTLP_SCOPE_NAME, "sampleprof", 10);
	sp_proto_bytes(&w->inner, OTLP_SCOPE_VERSION, SP_VERSION,
		       sizeof(SP_VERSION) - 1);
	sp_proto_message(&scopes, OTLP_SCOPES_SCOPE, &w->inner);
	put_profile(w, &scopes, first);
	for (size_t i = 0; i < w->rows->n_types; i++)
		if (i != first)
			put_profile(w, &scopes, i);
	sp_proto_message(&resources, OTLP_RESOURCES_SCOPES, &scopes);
	sp_proto_message(&w->out, OTLP_DATA_RESOURCES, &resources);
	put_dictionary(w);
	sp_proto_done(&scopes);
	sp_proto_done(&resources);
}

typedef int write_fn(FILE *out, const struct sp_proto *proto);

static int write_json(FILE *out, const struct sp_proto *proto)
{
	if (proto->failed)
		return -ENOMEM;
	return sp_otlp_write_json(out, proto->bytes, proto->n);
}

static int write_with(write_fn *write, FILE *out,
		      const struct sp_aggregate *aggregate,
		      const struct sp_export_options *options,
		      struct sp_error *err)
{
	struct sp_export_rows rows;
	struct writer w = {
		.profile = aggregate->analysis->profile,
		.options = options,
		.rows = &rows,
	};
	int r = sp_export_rows_new(aggregate->analysis, options, &rows, err);

	if (r < 0)
		return r;
	r = sp_code_init(&w.code, aggregate);
	if (r >= 0) {
		put_data(&w);
		r = w.code.failed ? -ENOMEM : write(out, &w.out);
	}
	if (r < 0)
		sp_error_memory(err, w.profile->path);
	free(rows.rows);
	sp_code_done(&w.code);
	sp_intern_done(&w.attributes);
	sp_proto_done(&w.out);
	sp_proto_done(&w.inner);
	sp_proto_done(&w.innermost);
	sp_proto_done(&w.value);
	return r;
}

int sp_export_otlp_write(FILE *out, const struct sp_aggregate *aggregate,
			 const struct sp_export_options *options,
			 struct sp_error *err)
{
	return write_with(options->part ? sp_proto_write_gzip : sp_proto_write,
			  out, aggregate, options, err);
}

int sp_export_otlp_json_write(FILE *out, const struct sp_aggregate *aggregate,
			      const struct sp_export_options *options,
			      struct sp_error *err)
{
	return write_with(write_json, out, aggregate, options, err);
}
