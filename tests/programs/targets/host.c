/* SPDX-License-Identifier: MIT */
/* host ROUNDS TIMES PLUGIN...: load each plug-in, have it allocate, unload it;
 * all of that ROUNDS times. */
#include <dlfcn.h>
#include <string.h>

#include "truth.h"

int main(int argc, char **argv)
{
	for (int round = 0; round < atoi(argv[1]); round++)
		for (int i = 3; i < argc; i++) {
			void (*run)(int times);
			void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
			void *address;

			if (!library)
				fprintf(stderr, "%s\n", dlerror());
			EXPECT(library);
			address = dlsym(library, "plugin_run");
			EXPECT(address);
			memcpy(&run, &address, sizeof(address));
			run(atoi(argv[2]));
			EXPECT(!dlclose(library));
		}
	return 0;
}
