// SPDX-License-Identifier: MIT
// A small shop with the three usual troubles of a heap: `remember_order`
// leaks, `parse_order` allocates and frees the same again and again, and
// `sort_rows` needs a lot at once.
#include <algorithm>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

struct order {
	std::string customer;
	std::vector<std::string> items;
};

// Churn: a line becomes strings that live until the next one.
static order parse_order(const std::string &line)
{
	order parsed;
	size_t from = 0, comma;

	while ((comma = line.find(',', from)) != std::string::npos) {
		parsed.items.push_back(line.substr(from, comma - from));
		from = comma + 1;
	}
	parsed.customer = line.substr(from);
	return parsed;
}

// A leak: what is remembered is never forgotten.
static auto &remembered = *new std::unordered_map<size_t, std::string>;

static void remember_order(size_t number, const order &o)
{
	remembered[number] = o.customer + " has ordered " + o.items[0];
}

// A peak: all rows at once, and a sorted copy of them.
static size_t sort_rows(size_t orders)
{
	std::vector<std::string> rows;

	for (size_t i = 0; i < orders; i++)
		rows.push_back("row " + std::to_string(i * 7919 % orders) +
			       " of the report of this day");
	std::vector<std::string> sorted = rows;

	std::sort(sorted.begin(), sorted.end());
	return sorted.front().size();
}

int main()
{
	const size_t orders = 150000;
	size_t width = 0;

	for (size_t i = 0; i < orders; i++) {
		const order o =
			parse_order("a box of nails and screws,a hammer with "
				    "a wooden handle,customer number " +
				    std::to_string(i));

		if (i % 4 == 0)
			remember_order(i, o);
		if (i == orders / 2)
			width = sort_rows(orders);
	}
	std::printf("%zu orders, %zu remembered, %zu wide\n", orders,
		    remembered.size(), width);
}
