/* SPDX-License-Identifier: MIT */
/* Containers that grow; their allocator counts. */
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "live.h"

#define STEPS 25

template <typename T> struct counting {
	using value_type = T;

	counting() = default;
	template <typename U> counting(const counting<U> &)
	{
	}

	T *allocate(size_t n)
	{
		T *p = std::allocator<T>().allocate(n);

		held_more(n * sizeof(T));
		return p;
	}
	void deallocate(T *p, size_t n)
	{
		held_less(n * sizeof(T));
		std::allocator<T>().deallocate(p, n);
	}
	bool operator==(const counting &) const
	{
		return true;
	}
	bool operator!=(const counting &) const
	{
		return false;
	}
};

using text = std::basic_string<char, std::char_traits<char>, counting<char>>;

int main()
{
	note_point();
	{
		std::vector<text, counting<text>> lines;
		std::map<int, text, std::less<int>,
			 counting<std::pair<const int, text>>>
			index;

		for (int step = 0; step < STEPS; step++) {
			for (int i = 0; i < 200; i++) {
				lines.emplace_back(next_random() % 300, 'x');
				index[(int)(next_random() % 500)] =
					lines.back();
			}
			note_point();
			if (step % 8 == 7) {
				lines.resize(lines.size() / 4);
				lines.shrink_to_fit();
				note_point();
			}
		}
	}
	note_point();
	print_points();
	return 0;
}
