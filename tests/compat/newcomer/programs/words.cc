// SPDX-License-Identifier: MIT
// Counts words.  The table is small; but split_line makes a string of every
// word, again and again: the churn.  -DLONGER makes the strings longer.
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

static std::vector<std::string> split_line(const std::string &line)
{
	std::vector<std::string> words;
	std::istringstream in(line);
	std::string word;

	while (in >> word)
#ifdef LONGER
		words.push_back("<" + word +
				"> as it was written, and in no other "
				"way, as somebody has asked for it");
#else
		words.push_back("<" + word + "> as it was written");
#endif
	return words;
}

int main()
{
	std::map<std::string, unsigned> counts;
	const char *const parts[] = {"heap", "stack", "page", "thread"};

	for (int i = 0; i < 200000; i++) {
		std::string line = std::string(parts[i % 4]) + " and " +
				   parts[i / 4 % 4] + " or the " +
				   std::to_string(i % 50) + "th line of it";

		for (const std::string &word : split_line(line))
			counts[word]++;
	}
	std::printf("%zu words\n", counts.size());
}
