/* SPDX-License-Identifier: MIT */
/*
 * plugins LIBRARY: main and four threads load the library, have it allocate and
 * unload it, again and again and side by side; some rounds end in an exception.
 * Prints what the library was given in leaf(), "leaf BYTES OBJECTS".
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline))

static std::atomic<unsigned long long> bytes, objects;
static const char *library;

typedef unsigned long long (*allocate_function)(unsigned int);

/* Loads it, calls it, and lets it go. */
static NOINLINE void use_plugin(unsigned int round)
{
	void *plugin = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	void *symbol = plugin ? dlsym(plugin, "plugin_allocate") : nullptr;
	auto allocate = reinterpret_cast<allocate_function>(symbol);

	if (!allocate) {
		std::fprintf(stderr, "%s\n", dlerror());
		std::_Exit(70);
	}
	try {
		bytes += allocate(round);
		objects++;
		if (round % 8 == 0)
			throw std::runtime_error("round " +
						 std::to_string(round));
	} catch (const std::runtime_error &error) {
		std::string text(error.what());

		text += " is caught, in a text that needs memory";
	}
	dlclose(plugin);
}

static NOINLINE void run_thread()
{
	std::map<unsigned int, std::string> words;

	for (unsigned int round = 0; round < 100; round++) {
		use_plugin(round);
		words[round] = std::string(20 + round, 'x');
	}
}

int main(int argc, char **argv)
{
	std::vector<std::thread> threads;

	library = argc > 1 ? argv[1] : "";
	use_plugin(1);
	for (int i = 0; i < 4; i++)
		threads.emplace_back(run_thread);
	for (auto &thread : threads)
		thread.join();
	std::printf("leaf %llu %llu\n", bytes.load(), objects.load());
	return 0;
}
