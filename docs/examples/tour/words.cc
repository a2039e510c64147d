/* SPDX-License-Identifier: MIT */
/* A few lines that are a lot of work for a compiler. */
#include <iostream>
#include <map>
#include <regex>
#include <string>

int main()
{
	std::map<std::string, int> count;
	const std::regex word("[a-z]+");

	for (std::string line; std::getline(std::cin, line);)
		for (std::sregex_iterator i(line.begin(), line.end(), word),
		     end;
		     i != end; ++i)
			count[i->str()]++;
	for (const auto &[text, n] : count)
		std::cout << n << ' ' << text << '\n';
}
