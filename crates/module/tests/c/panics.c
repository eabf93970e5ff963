/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that panics: an error code, that operation ended, everything else as before. The
 * library is one whose MD5 panics. */
#include "common.h"

#define THREADS 4
#define ROUNDS 200

static CK_RV digest(CK_SESSION_HANDLE session, CK_MECHANISM_TYPE type)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_BYTE data[3] = "abc", out[64];
	CK_ULONG length = sizeof(out);
	OK(p11->C_DigestInit(session, &mechanism));
	return p11->C_Digest(session, data, sizeof(data), out, &length);
}

/* One thread's panics and its neighbours' work, all at once. */
static void *work(void *argument)
{
	int panics = *(int *)argument;
	for (int round = 0; round < ROUNDS; round++) {
		CK_SESSION_HANDLE session = open_session();
		if (panics)
			EXPECT(digest(session, CKM_MD5), CKR_GENERAL_ERROR);
		else
			OK(digest(session, CKM_SHA256));
		OK(p11->C_CloseSession(session));
	}
	return NULL;
}

int main(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE broken = open_session(), other = open_session();
	EXPECT(digest(broken, CKM_MD5), CKR_GENERAL_ERROR);
	OK(digest(other, CKM_SHA256));
	OK(digest(broken, CKM_SHA256));
	OK(p11->C_CloseSession(broken));
	OK(digest(open_session(), CKM_SHA256));

	pthread_t threads[THREADS];
	int panics[THREADS];
	for (int at = 0; at < THREADS; at++) {
		panics[at] = at % 2;
		CHECK(pthread_create(&threads[at], NULL, work, &panics[at]) == 0);
	}
	for (int at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
	OK(digest(other, CKM_SHA256));
	OK(p11->C_Finalize(NULL));
	return 0;
}
