// SPDX-License-Identifier: Apache-2.0
/* Which configuration a forked child has: its parent's, although its environment was cleared, or the one that its own
 * environment names. The argument is a configuration with two tokens; the variable METASLOT_CONF names one with three. */
#include "common.h"

static CK_ULONG slots(void)
{
	CK_ULONG count = 0;
	OK(p11->C_GetSlotList(CK_FALSE, NULL, &count));
	return count;
}

static void child(const char *named, CK_ULONG expected)
{
	pid_t process = fork();
	CHECK(process >= 0);
	if (process == 0) {
		alarm(20);
		clearenv();
		if (named != NULL) setenv("METASLOT_CONF", named, 1);
		OK(p11->C_Initialize(NULL));
		CHECK(slots() == expected);
		OK(p11->C_Finalize(NULL));
		/* Later, too, and in its own children. */
		OK(p11->C_Initialize(NULL));
		CHECK(slots() == expected);
		process = fork();
		if (process == 0) {
			clearenv();
			OK(p11->C_Initialize(NULL));
			CHECK(slots() == expected);
			_exit(0);
		}
		_exit(ended(process));
	}
	CHECK(ended(process) == 0);
}

int main(int count, char **arguments)
{
	alarm(60);
	load();
	CHECK(count == 2);
	OK(p11->C_Initialize(NULL));
	CHECK(slots() == 3);
	child(NULL, 3);
	child(arguments[1], 2);
	OK(p11->C_Finalize(NULL));
	/* A process that is not forked has the environment that it has. */
	setenv("METASLOT_CONF", arguments[1], 1);
	OK(p11->C_Initialize(NULL));
	CHECK(slots() == 2);
	OK(p11->C_Finalize(NULL));
	unsetenv("METASLOT_CONF");
	OK(p11->C_Initialize(NULL));
	CHECK(slots() == 1);
	OK(p11->C_Finalize(NULL));
	return 0;
}
