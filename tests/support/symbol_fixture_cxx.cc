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

} // namespace

} // namespace shapes

extern "C" {

fixture_entry_fn fixture_template, fixture_anonymous, fixture_method;
fixture_entry_fn fixture_lambda;

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
