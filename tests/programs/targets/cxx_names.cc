/* SPDX-License-Identifier: MIT */
/* Functions whose names are wider than a screen. */
#include <cstdlib>

#include "truth.h"

namespace shop
{
namespace a_namespace_with_a_long_name
{

struct a_type_with_a_long_name {
};

template <typename first, typename second> struct a_holder_of_what_is_kept {
	NOINLINE void *keep_it(size_t size)
	{
		void *kept = malloc(size);

		STAY();
		return kept;
	}
};

} // namespace a_namespace_with_a_long_name
} // namespace shop

int main(void)
{
	using namespace shop::a_namespace_with_a_long_name;
	a_holder_of_what_is_kept<a_type_with_a_long_name, int> holder;
	void *volatile kept;

	for (int i = 0; i < 200; i++)
		kept = holder.keep_it(100);
	(void)kept;
	return 0;
}
