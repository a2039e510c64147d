/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <stdlib.h>

#include "report/tree.h"
#include "text/lines.h"
#include "text/text.h"
#include "view/view_row.h"

/* Beyond this a line is all blanks. */
#define INDENT_MAX 60

/* Of a line that an estimate, its share and a name need. */
#define ROW_COLUMNS 60

int *sp_view_tree_indents(const uint32_t *depths, size_t n)
{
	int *indents = calloc(n + 1, sizeof(*indents));
	size_t *parents = calloc(n + 1, sizeof(*parents));
	size_t *children = calloc(n + 1, sizeof(*children));
	size_t *last = calloc(n + 1, sizeof(*last)); /* by depth, 1 + node */

	if (!indents || !parents || !children || !last) {
		free(indents);
		indents = NULL;
		goto out;
	}
	for (size_t i = 0; i < n; i++) {
		const uint32_t depth = depths[i];

		last[depth] = i + 1;
		parents[i] = depth ? last[depth - 1] : 0;
		children[parents[i]]++;
	}
	for (size_t i = 0; i < n; i++)
		if (parents[i])
			indents[i] = indents[parents[i] - 1] +
				     (children[parents[i]] > 1 ? 2 : 0);
out:
	free(parents);
	free(children);
	free(last);
	return indents;
}

static int *indents_of(const struct sp_tree *tree)
{
	uint32_t *depths = calloc(tree->n_nodes + 1, sizeof(*depths));
	int *indents = NULL;

	for (size_t i = 0; depths && i < tree->n_nodes; i++)
		depths[i] = tree->nodes[i].depth;
	if (depths)
		indents = sp_view_tree_indents(depths, tree->n_nodes);
	free(depths);
	return indents;
}

static void print_nodes(struct sp_view_rows *rows,
			const struct sp_aggregate *aggregate,
			const struct sp_tree *tree, const int *indents)
{
	const int room = (int)sp_lines_columns() - ROW_COLUMNS;
	const int most = !sp_lines_is_terminal() ? INDENT_MAX
			 : room > 0              ? room
						 : 0;

	for (size_t i = 0; i < tree->n_nodes; i++) {
		const struct sp_tree_node *node = &tree->nodes[i];
		const int indent = indents[i] < most ? indents[i] : most;

		sp_view_row_print(rows, node->bytes, node->samples);
		fprintf(rows->out, "%*s", indent, "");
		switch (node->kind) {
		case SP_TREE_PLACE:
			sp_view_row_name(rows->out, aggregate->granularity,
					 sp_aggregate_at(aggregate, node->row));
			break;
		case SP_TREE_ITSELF:
			fputs("itself", rows->out);
			break;
		case SP_TREE_OTHERS:
			fprintf(rows->out, "and %s other place%s",
				sp_text_count(node->n_others).text,
				sp_text_plural(node->n_others));
			break;
		}
		putc('\n', rows->out);
	}
}

static void print_tree(FILE *out, const struct sp_aggregate *aggregate,
		       double share, const struct sp_tree *tree,
		       const int *indents)
{
	const struct sp_analysis *a = aggregate->analysis;
	struct sp_view_rows rows = {
		.out = out,
		.whole = sp_estimate_bytes_value(&a->how, a->whole),
		.confidence = aggregate->how.confidence,
	};

	fprintf(out, "\nCall tree, callers above callees; %% %s",
		sp_view_row_whole(a->selection.view));
	if (share > 0)
		fprintf(out, ";\nplaces below %s are summed up",
			sp_text_percent(share, 1).text);
	fputs(":\n\n", out);
	sp_view_row_head(&rows, "place");
	print_nodes(&rows, aggregate, tree, indents);
	sp_view_row_legend(&rows);
}

int sp_view_tree_print(FILE *out, const struct sp_aggregate *aggregate,
		       double share, struct sp_error *err)
{
	struct sp_tree *tree;
	int *indents;
	int r;

	if (!aggregate->n_stacks)
		return 0;
	r = sp_tree_new(aggregate, share, &tree, err);
	if (r < 0)
		return r;
	indents = indents_of(tree);
	if (indents)
		print_tree(out, aggregate, share, tree, indents);
	else
		r = sp_error_memory(err, aggregate->analysis->profile->path);
	free(indents);
	sp_tree_free(tree);
	return r;
}
