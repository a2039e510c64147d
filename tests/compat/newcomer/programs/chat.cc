// SPDX-License-Identifier: MIT
// A chat server without a network: four threads read messages, keep the last
// hundred of each room, and know who is typing.  Who leaves without a word is
// never forgotten: note_typing is the leak.  -DFIXED forgets everybody.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace chat
{
struct message {
	std::string from, text;
};

class room
{
	std::mutex lock;
	std::deque<std::shared_ptr<message>> last;
	std::unordered_map<std::string, std::vector<std::string>> typing;

      public:
	void say(std::string from, std::string text)
	{
		auto said = std::make_shared<message>(
			message{std::move(from), std::move(text)});
		std::lock_guard<std::mutex> held(lock);

		last.push_back(std::move(said));
		if (last.size() > 100)
			last.pop_front();
	}

	__attribute__((noinline)) void note_typing(const std::string &who,
						   const std::string &draft)
	{
		std::lock_guard<std::mutex> held(lock);

		typing[who].push_back(draft);
	}

	void leave(const std::string &who)
	{
		std::lock_guard<std::mutex> held(lock);

		typing.erase(who);
	}
};

// Not taken down at the end, as in most servers.
static auto &rooms = *new std::map<std::string, room>;

static void serve(unsigned worker, unsigned visitors)
{
	for (unsigned i = 0; i < visitors; i++) {
		std::string who = "visitor " + std::to_string(worker) + "." +
				  std::to_string(i);
		room &here = rooms.at("room " + std::to_string(i % 16));

		for (int line = 0; line < 5; line++)
			here.say(who, "this is line " + std::to_string(line) +
					      " of what I have to say here");
		here.note_typing(who, "an answer that was never sent: " + who);
#ifdef FIXED
		here.leave(who);
#else
		if (i % 2)
			here.leave(who);
#endif
	}
}
} // namespace chat

int main(int argc, char **argv)
{
	unsigned visitors = argc > 1 ? atoi(argv[1]) : 200000;
	std::vector<std::thread> workers;

	for (int i = 0; i < 16; i++)
		chat::rooms["room " + std::to_string(i)];
	for (unsigned i = 0; i < 4; i++)
		workers.emplace_back(chat::serve, i, visitors);
	for (std::thread &worker : workers)
		worker.join();
	std::printf("%u visitors\n", 4 * visitors);
}
