/* SPDX-License-Identifier: MIT */
#include "support/symbol_fixture.h"

namespace shapes
{

template <typename T> struct Box {
	fixture_probe_fn *probe;

	__attribute__((noinline)) void push(const T &, int *lines)
	{
		FIXTURE_AT(&lines[0], probe());
	}
};

struct Inliner {
	__attribute__((always_inline)) void call(fixture_probe_fn *probe,
						 int *lines) const
	{
		FIXTURE_AT(&lines[0], probe());
	}

	void call_in_lambda(fixture_probe_fn *probe, int *lines) const
	{
		auto lambda = [&]() __attribute__((noinline))
		{
			FIXTURE_AT(&lines[1], call(probe, lines));
		};

		FIXTURE_AT(&lines[2], lambda());
	}
};

__attribute__((noinline)) void outer(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[1], Inliner().call(probe, lines));
}

namespace
{

__attribute__((noinline)) void hidden(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[1], Inliner().call(probe, lines));
}

/* Without a symbol of their own, and without a linkage name. */
__attribute__((always_inline)) inline void same(fixture_probe_fn *probe,
						int *lines)
{
	FIXTURE_AT(&lines[0], probe());
}

__attribute__((always_inline)) inline void same(fixture_probe_fn *probe,
						const int *const &, int *lines)
{
	FIXTURE_AT(&lines[0], probe());
}

} // namespace

} // namespace shapes

extern "C" {

fixture_entry_fn fixture_template, fixture_anonymous, fixture_method;
fixture_entry_fn fixture_lambda, fixture_second_lambda, fixture_overload;

/* Two lambdas of the same arguments among others, inlined. */
void fixture_second_lambda(fixture_probe_fn *probe, int *lines)
{
	auto other = [&](int) __attribute__((always_inline))
	{
		probe();
	};
	auto first = [&]() __attribute__((always_inline))
	{
		*lines = 1;
	};
	auto second = [&]() __attribute__((always_inline))
	{
		FIXTURE_AT(&lines[0], probe());
	};

	first();
	FIXTURE_AT(&lines[1], second());
	if (!probe)
		other(1);
}

void fixture_overload(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[1], shapes::same(probe, lines, lines));
}

void fixture_template(fixture_probe_fn *probe, int *lines)
{
	shapes::Box<const char *> box = {probe};

	FIXTURE_AT(&lines[1], box.push(nullptr, lines));
}

void fixture_anonymous(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[2], shapes::hidden(probe, lines));
}

void fixture_method(fixture_probe_fn *probe, int *lines)
{
	FIXTURE_AT(&lines[2], shapes::outer(probe, lines));
}

void fixture_lambda(fixture_probe_fn *probe, int *lines)
{
	shapes::Inliner().call_in_lambda(probe, lines);
}
}
