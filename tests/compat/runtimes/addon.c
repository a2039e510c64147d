/* SPDX-License-Identifier: MIT */
/* An add-on of node with an allocating function of its own. */
#include <node_api.h>
#include <stdlib.h>

static void *volatile kept;

static __attribute__((noinline)) void fill_blocks(int n)
{
	for (int i = 0; i < n; i++)
		kept = malloc(3000);
}

static napi_value fill(napi_env env, napi_callback_info info)
{
	napi_value n_value;
	size_t argc = 1;
	int32_t n = 0;

	napi_get_cb_info(env, info, &argc, &n_value, NULL, NULL);
	napi_get_value_int32(env, n_value, &n);
	fill_blocks(n);
	return NULL;
}

static napi_value init(napi_env env, napi_value exports)
{
	napi_value function;

	napi_create_function(env, "fill", NAPI_AUTO_LENGTH, fill, NULL,
			     &function);
	napi_set_named_property(env, exports, "fill", function);
	return exports;
}

NAPI_MODULE(addon, init)
