// SPDX-License-Identifier: MIT
// hazard_throw SCENARIO: C++ exceptions through and during allocation, and
// thread-local objects whose destructors allocate.
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "truth.h"

namespace
{

volatile size_t huge = static_cast<size_t>(1) << 62;
int handler_calls;

NOINLINE void throw_from(int depth)
{
	std::string text(static_cast<size_t>(depth) * 40, 'x');

	if (depth == 0)
		throw std::runtime_error("thrown " + text);
	throw_from(depth - 1);
	STAY();
}

NOINLINE int catch_all(int times)
{
	int caught = 0;

	for (int i = 0; i < times; i++)
		try {
			throw_from(8);
		} catch (const std::exception &) {
			try {
				throw_from(3);
			} catch (...) {
				std::exception_ptr kept =
					std::current_exception();

				try {
					std::rethrow_exception(kept);
				} catch (const std::runtime_error &e) {
					caught +=
						!strncmp(e.what(), "thrown", 6);
				}
			}
		}
	return caught;
}

void do_exceptions()
{
	std::vector<std::thread> threads;
	int caught[4] = {};

	for (int &n : caught)
		threads.emplace_back([&n] { n = catch_all(100); });
	for (std::thread &thread : threads)
		thread.join();
	for (int n : caught)
		printf("caught %d\n", n);
}

template <class Run> int throws(Run run)
{
	try {
		run();
	} catch (const std::bad_alloc &) {
		return 1;
	}
	return 0;
}

void try_and_forget()
{
	if (++handler_calls % 3 == 0)
		std::set_new_handler(nullptr);
}

struct alignas(64) Wide {
	char bytes[64];
};

// Every operator fails as it should, also after the program's handler was asked
// three times.
void do_bad_alloc()
{
	int thrown = 0;

	for (int i = 0; i < 50; i++) {
		std::set_new_handler(try_and_forget);
		thrown +=
			throws([] { ::operator delete(::operator new(huge)); });
		thrown += throws([] { delete[] new char[huge]; });
		thrown += throws([] { delete[] new Wide[huge / 64]; });
		EXPECT(!::operator new(huge, std::nothrow));
		EXPECT(!::operator new[](huge, std::nothrow));
		EXPECT(!::operator new(huge, std::align_val_t(64),
				       std::nothrow));
	}
	printf("thrown %d handler %d\n", thrown, handler_calls);
}

int destroyed;

struct Late {
	std::string text = std::string(100, 'l');

	~Late()
	{
		std::vector<std::string> more(10, text);

		destroyed += static_cast<int>(more.size());
	}
};

thread_local Late late;

void do_thread_local()
{
	for (int i = 0; i < 50; i++)
		std::thread([] { EXPECT(late.text.size() == 100); }).join();
	printf("destroyed %d\n", destroyed);
}

} // namespace

int main(int argc, char **argv)
{
	EXPECT(argc == 2);
	if (!strcmp(argv[1], "exceptions"))
		do_exceptions();
	else if (!strcmp(argv[1], "bad_alloc"))
		do_bad_alloc();
	else if (!strcmp(argv[1], "thread_local"))
		do_thread_local();
	return 0;
}
