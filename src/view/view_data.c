/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <inttypes.h>
#include <string.h>

#include "report/edges.h"
#include "report/function_json.h"
#include "report/tree.h"
#include "text/json.h"
#include "text/table.h"
#include "view/view_json_frames.h"
#include "view/view_json_head.h"

static struct sp_json begin_data(FILE *out,
				 const struct sp_aggregate *aggregate)
{
	struct sp_json json = sp_json_begin(out);

	sp_view_json_head(&json, aggregate);
	return json;
}

/* The columns that identify a function, or other row. */
static void put_identity(struct sp_json *json, enum sp_granularity granularity,
			 const struct sp_aggregate_function *f)
{
	sp_function_json_identity(json, f);
	if (granularity == SP_BY_ADDRESS)
		sp_json_u64(json, "offset", f->offset);
}

#define IDENTITY_COLUMNS "name,module,file,line,offset"

static void put_identity_csv(FILE *out, enum sp_granularity granularity,
			     const struct sp_aggregate_function *f)
{
	sp_table_csv_text(out, f ? f->name : "");
	putc(',', out);
	sp_table_csv_text(out, f ? f->module : "");
	putc(',', out);
	sp_table_csv_text(out, f && f->file ? f->file : "");
	putc(',', out);
	if (f && f->line)
		fprintf(out, "%" PRIu32, f->line);
	putc(',', out);
	if (f && granularity == SP_BY_ADDRESS)
		fprintf(out, "%" PRIu64, f->offset);
}

/* ---- tree ---- */

static const char *const kinds[] = {
	[SP_TREE_PLACE] = "place",
	[SP_TREE_ITSELF] = "itself",
	[SP_TREE_OTHERS] = "others",
};

static void put_node(struct sp_json *json, const struct sp_aggregate *a,
		     const struct sp_tree_node *node)
{
	sp_json_open(json, NULL, '{');
	sp_json_u64(json, "depth", node->depth);
	sp_json_string(json, "kind", kinds[node->kind]);
	if (node->kind == SP_TREE_PLACE)
		put_identity(json, a->granularity,
			     sp_aggregate_at(a, node->row));
	if (node->kind == SP_TREE_OTHERS)
		sp_json_u64(json, "places", node->n_others);
	sp_json_u64(json, "samples", node->samples);
	sp_json_interval(json, "bytes", node->bytes);
	if (node->kind == SP_TREE_PLACE) {
		sp_json_u64(json, "flat_samples", node->flat_samples);
		sp_json_interval(json, "flat_bytes", node->flat_bytes);
	}
	sp_json_close(json, '}');
}

static void put_node_csv(FILE *out, const struct sp_aggregate *a,
			 const struct sp_tree_node *node)
{
	const bool is_place = node->kind == SP_TREE_PLACE;

	fprintf(out, "%" PRIu32 ",%s,", node->depth, kinds[node->kind]);
	put_identity_csv(out, a->granularity,
			 is_place ? sp_aggregate_at(a, node->row) : NULL);
	putc(',', out);
	if (node->kind == SP_TREE_OTHERS)
		fprintf(out, "%zu", node->n_others);
	sp_table_csv_interval(out, node->bytes);
	fprintf(out, ",%" PRIu64, node->samples);
	if (is_place) {
		sp_table_csv_interval(out, node->flat_bytes);
		fprintf(out, ",%" PRIu64, node->flat_samples);
	} else {
		fputs(",,,,", out);
	}
	putc('\n', out);
}

static void put_tree(FILE *out, const struct sp_aggregate *aggregate,
		     const struct sp_tree *tree, bool as_csv)
{
	struct sp_json json;

	if (as_csv) {
		fputs("depth,kind," IDENTITY_COLUMNS ",places,"
		      "bytes,bytes_lo,bytes_hi,samples,"
		      "flat_bytes,flat_bytes_lo,flat_bytes_hi,flat_samples\n",
		      out);
		for (size_t i = 0; i < tree->n_nodes; i++)
			put_node_csv(out, aggregate, &tree->nodes[i]);
		return;
	}
	json = begin_data(out, aggregate);
	sp_json_open(&json, "tree", '[');
	for (size_t i = 0; i < tree->n_nodes; i++)
		put_node(&json, aggregate, &tree->nodes[i]);
	sp_json_close(&json, ']');
	sp_json_end(&json);
}

int sp_view_data_tree(FILE *out, const struct sp_aggregate *aggregate,
		      double share, bool as_csv, struct sp_error *err)
{
	struct sp_tree *tree;
	int r = sp_tree_new(aggregate, share, &tree, err);

	if (r < 0)
		return r;
	put_tree(out, aggregate, tree, as_csv);
	sp_tree_free(tree);
	return 0;
}

/* ---- peek ---- */

static void put_edges(struct sp_json *json, const char *key,
		      const struct sp_aggregate *a, const struct sp_edge *edges,
		      size_t n)
{
	sp_json_open(json, key, '[');
	for (size_t i = 0; i < n; i++) {
		sp_json_open(json, NULL, '{');
		if (edges[i].row == SP_EDGE_NOBODY)
			sp_json_null(json, "name");
		else
			put_identity(json, a->granularity,
				     sp_aggregate_at(a, edges[i].row));
		sp_json_u64(json, "samples", edges[i].sums.all.samples);
		sp_view_json_bytes(json, "bytes", &a->how, &edges[i].sums);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
}

static void put_function(struct sp_json *json, const struct sp_aggregate *a,
			 const struct sp_aggregate_function *f)
{
	put_identity(json, a->granularity, f);
	sp_json_u64(json, "samples", f->flat.all.samples);
	sp_json_u64(json, "cum_samples", f->cum.all.samples);
	sp_view_json_bytes(json, "flat_bytes", &a->how, &f->flat);
	sp_view_json_bytes(json, "cum_bytes", &a->how, &f->cum);
	sp_view_json_objects(json, "flat_objects", &a->how, &f->flat);
}

static void put_peek(FILE *out, const struct sp_aggregate *a,
		     const struct sp_edges *edges, size_t n)
{
	struct sp_json json = begin_data(out, a);

	sp_json_open(&json, "functions", '[');
	for (size_t i = 0; i < n; i++) {
		sp_json_open(&json, NULL, '{');
		put_function(&json, a, edges[i].function);
		put_edges(&json, "callers", a, edges[i].callers,
			  edges[i].n_callers);
		put_edges(&json, "callees", a, edges[i].callees,
			  edges[i].n_callees);
		sp_json_close(&json, '}');
	}
	sp_json_close(&json, ']');
	sp_json_end(&json);
}

static void put_edges_csv(FILE *out, const struct sp_aggregate *a,
			  const struct sp_aggregate_function *f,
			  const char *relation, const struct sp_edge *edges,
			  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const bool is_somebody = edges[i].row != SP_EDGE_NOBODY;

		put_identity_csv(out, a->granularity, f);
		fprintf(out, ",%s,", relation);
		put_identity_csv(out, a->granularity,
				 is_somebody ? sp_aggregate_at(a, edges[i].row)
					     : NULL);
		sp_table_csv_interval(
			out, sp_estimate_bytes(&a->how, &edges[i].sums));
		fprintf(out, ",%" PRIu64 "\n", edges[i].sums.all.samples);
	}
}

static void put_peek_csv(FILE *out, const struct sp_aggregate *a,
			 const struct sp_edges *edges, size_t n)
{
	fputs(IDENTITY_COLUMNS ",relation,other_name,other_module,other_file,"
			       "other_line,other_offset,"
			       "bytes,bytes_lo,bytes_hi,samples\n",
	      out);
	for (size_t i = 0; i < n; i++) {
		const struct sp_edges *e = &edges[i];

		put_edges_csv(out, a, e->function, "caller", e->callers,
			      e->n_callers);
		put_edges_csv(out, a, e->function, "callee", e->callees,
			      e->n_callees);
	}
}

void sp_view_data_peek(FILE *out, const struct sp_aggregate *aggregate,
		       const struct sp_edges *edges, size_t n, bool as_csv)
{
	if (as_csv)
		put_peek_csv(out, aggregate, edges, n);
	else
		put_peek(out, aggregate, edges, n);
}

/* ---- list ---- */

static void put_listing(struct sp_json *json, const struct sp_aggregate *a,
			const struct sp_listing *l)
{
	sp_json_open(json, NULL, '{');
	put_function(json, a, l->function);
	sp_json_string(json, "source", l->file);
	sp_json_open(json, "lines", '[');
	for (size_t i = 0; i < l->n_lines; i++) {
		sp_json_open(json, NULL, '{');
		put_function(json, a, l->lines[i]);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
	sp_json_close(json, '}');
}

void sp_view_data_list(FILE *out, const struct sp_aggregate *functions,
		       const struct sp_listings *listings, bool as_csv)
{
	struct sp_json json;

	if (as_csv) {
		sp_view_csv_functions_head(out);
		for (size_t i = 0; i < listings->n_listings; i++)
			for (size_t k = 0; k < listings->listings[i].n_lines;
			     k++)
				sp_view_csv_function(
					out, functions,
					listings->listings[i].lines[k]);
		return;
	}
	json = begin_data(out, functions);
	sp_json_open(&json, "listings", '[');
	for (size_t i = 0; i < listings->n_listings; i++)
		put_listing(&json, functions, &listings->listings[i]);
	sp_json_close(&json, ']');
	sp_json_end(&json);
}

/* ---- traces ---- */

int sp_view_data_traces(FILE *out, const struct sp_aggregate *a, size_t n_max,
			unsigned int version, struct sp_error *err)
{
	struct sp_json_frames *frames;
	struct sp_json json;
	size_t n = a->n_stacks;
	int r;

	if (n_max && n_max < n)
		n = n_max;
	r = sp_json_frames_new(a, n, version, &frames, err);
	if (r < 0)
		return r;
	json = begin_data(out, a);
	sp_json_frames_version(&json, frames);
	sp_json_frames_all(&json, frames);
	sp_json_open(&json, "stacks", '[');
	for (size_t i = 0; i < n; i++) {
		const struct sp_aggregate_stack *s = &a->stacks[i];

		sp_json_open(&json, NULL, '{');
		sp_json_frames_of(&json, frames, s->stack);
		sp_json_u64(&json, "samples", s->sums->all.samples);
		sp_view_json_bytes(&json, "bytes", &a->how, s->sums);
		sp_view_json_objects(&json, "objects", &a->how, s->sums);
		sp_json_close(&json, '}');
	}
	sp_json_close(&json, ']');
	sp_json_end(&json);
	sp_json_frames_free(frames);
	return 0;
}

/* ---- stats ---- */

static void put_sizes(struct sp_json *json, const struct sp_analysis *a)
{
	const struct sp_class_sums *all = &a->view->all;

	sp_json_open(json, "sizes", '[');
	for (uint32_t i = 0; i < all->n_classes; i++) {
		const uint32_t class = all->classes[i].class;
		uint64_t samples;
		struct sp_interval bytes =
			sp_analysis_size_bytes(a, class, class, &samples);

		sp_json_open_flat(json, NULL, '{');
		sp_json_time(json, "max_bytes", sp_format_class_max(class));
		sp_json_u64(json, "samples", samples);
		sp_json_interval(json, "bytes", bytes);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
}

static void put_top(struct sp_json *json, const char *key,
		    struct sp_aggregate *a, enum sp_aggregate_order order,
		    size_t n_max)
{
	size_t n = a->n_functions;

	if (n_max && n_max < n)
		n = n_max;
	sp_aggregate_sort(a, order);
	sp_json_open(json, key, '[');
	for (size_t i = 0; i < n; i++) {
		if (!a->functions[i].flat.all.samples)
			break;
		sp_json_open(json, NULL, '{');
		put_function(json, a, &a->functions[i]);
		sp_json_close(json, '}');
	}
	sp_json_close(json, ']');
}

void sp_view_data_stats(FILE *out, struct sp_aggregate *a,
			const struct sp_stats *stats, size_t n_max)
{
	struct sp_json json = begin_data(out, a);

	sp_json_open(&json, "entries", '[');
	for (unsigned int i = 0; i < stats->n_entries; i++) {
		const struct sp_class_sums *t =
			&stats->entries[stats->order[i]];

		sp_json_open(&json, NULL, '{');
		sp_json_string(&json, "name", sp_entry_name(stats->order[i]));
		sp_json_u64(&json, "samples", t->all.samples);
		sp_view_json_bytes(&json, "bytes", &a->how, t);
		sp_view_json_objects(&json, "objects", &a->how, t);
		sp_json_close(&json, '}');
	}
	sp_json_close(&json, ']');
	put_sizes(&json, a->analysis);
	put_top(&json, "top_bytes", a, SP_AGGREGATE_BY_FLAT, n_max);
	put_top(&json, "top_objects", a, SP_AGGREGATE_BY_COUNT, n_max);
	sp_json_end(&json);
}

/* ---- threads ---- */

void sp_view_data_threads(FILE *out, const struct sp_analysis *a)
{
	fputs("index,tid,name,exact_alloc_bytes,exact_alloc_objects,"
	      "bytes,bytes_lo,bytes_hi,samples\n",
	      out);
	for (size_t i = 0; i < a->profile->n_thread_infos; i++) {
		const struct sp_thread_info *t = &a->profile->thread_infos[i];
		const struct sp_class_sums *sums = &a->view->threads[i];
		char name[SP_FORMAT_THREAD_NAME_MAX + 1] = "";

		memcpy(name, t->name, sizeof(t->name));
		fprintf(out, "%" PRIu32 ",%" PRIu64 ",", t->index, t->tid);
		sp_table_csv_text(out, name);
		if (t->has_totals)
			fprintf(out, ",%" PRIu64 ",%" PRIu64,
				t->exact_alloc_bytes, t->exact_alloc_objects);
		else
			fputs(",,", out);
		sp_table_csv_interval(out, sp_estimate_bytes(&a->how, sums));
		fprintf(out, ",%" PRIu64 "\n", sums->all.samples);
	}
}
