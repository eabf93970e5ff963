/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is over soon: it makes so many digests and ends or, with another argument, is killed. */
#include "common.h"

int main(int argc, char **argv)
{
	CHECK(argc >= 2);
	load();
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = open_session();
	CK_BYTE hash[32];
	for (int i = 0; i < atoi(argv[1]); i++) sha256(session, "abc", 3, hash);
	if (argc == 3) kill(getpid(), SIGKILL);
	OK(p11->C_Finalize(NULL));
	return 0;
}
