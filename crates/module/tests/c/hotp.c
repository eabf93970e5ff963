/* SPDX-License-Identifier: Apache-2.0 */
/* HOTP: a key of the token counts its passwords, over threads and processes, and gives each of them once; with a counter of the
 * caller's any. Arguments: the file of a copy, and the first ten passwords of the RFC's key. */
#include "common.h"

enum { THREADS = 4, EACH = 8 };

static METASLOT_FUNCTION_LIST *metaslot;
static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE key;

/* What came out last. */
struct password {
	char digits[16];
	CK_ULONG length;
	uint64_t counter;
};

static void begin(CK_SLOT_ID slot)
{
	OK(p11->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session));
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
}

static CK_OBJECT_HANDLE find(void)
{
	CK_KEY_TYPE type = CKK_HOTP;
	CK_ATTRIBUTE query[] = {{CKA_KEY_TYPE, &type, sizeof type}, {CKA_TOKEN, &yes, 1}};
	CK_OBJECT_HANDLE found;
	CK_ULONG count;
	OK(p11->C_FindObjectsInit(session, query, 2));
	OK(p11->C_FindObjects(session, &found, 1, &count));
	OK(p11->C_FindObjectsFinal(session));
	CHECK(count == 1);
	return found;
}

static CK_RV make(CK_BBOOL on_token, CK_ATTRIBUTE_TYPE but, void *value, CK_ULONG length, CK_OBJECT_HANDLE *made)
{
	CK_OBJECT_CLASS class = CKO_OTP_KEY;
	CK_KEY_TYPE type = CKK_HOTP;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},
		{CKA_TOKEN, &on_token, 1},	   {CKA_SENSITIVE, &yes, 1},
		{CKA_VALUE, "12345678901234567890", 20}, {but, value, length},
	};
	return p11->C_CreateObject(session, template, but == 0 ? 5 : 6, made);
}

static CK_RV give(CK_SESSION_HANDLE in, CK_OBJECT_HANDLE by, CK_OTP_PARAMS *params, struct password *out)
{
	CK_MECHANISM mechanism = {CKM_HOTP, params, params == NULL ? 0 : sizeof *params};
	CK_BYTE room[256];
	CK_ULONG length = 0, kinds = 0;
	CK_RV rv = p11->C_SignInit(in, &mechanism, by);
	if (rv != CKR_OK) return rv;
	OK(p11->C_Sign(in, NULL, 0, NULL, &length));
	CHECK(length > sizeof(CK_OTP_SIGNATURE_INFO) && length < sizeof room);
	CK_ULONG shorter = length - 1;
	EXPECT(p11->C_Sign(in, NULL, 0, room + 1, &shorter), CKR_BUFFER_TOO_SMALL);
	/* Anywhere, also where no word begins. */
	rv = p11->C_Sign(in, NULL, 0, room + 1, &length);
	if (rv != CKR_OK) return rv;
	CK_OTP_SIGNATURE_INFO info;
	memcpy(&info, room + 1, sizeof info);
	for (CK_ULONG at = 0; at < info.ulCount; at++) {
		CK_OTP_PARAM param;
		memcpy(&param, (CK_BYTE *)info.pParams + at * sizeof param, sizeof param);
		CHECK((CK_BYTE *)param.pValue > room && (CK_BYTE *)param.pValue + param.ulValueLen <= room + 1 + length);
		if (param.type == CK_OTP_VALUE) {
			memset(out->digits, 0, sizeof out->digits);
			memcpy(out->digits, param.pValue, param.ulValueLen);
			out->length = param.ulValueLen;
		}
		if (param.type == CK_OTP_COUNTER) {
			CHECK(param.ulValueLen == 8);
			for (int byte = 0; byte < 8; byte++)
				out->counter = out->counter << 8 | ((CK_BYTE *)param.pValue)[byte];
		}
		kinds |= 1UL << param.type;
	}
	CHECK(kinds == (1UL << CK_OTP_VALUE | 1UL << CK_OTP_COUNTER));
	return CKR_OK;
}

static void bytes_of(uint64_t counter, CK_BYTE bytes[8])
{
	for (int at = 7; at >= 0; at--, counter >>= 8) bytes[at] = (CK_BYTE)counter;
}

static uint64_t counter_of(void)
{
	CK_BYTE bytes[8];
	uint64_t counter = 0;
	CK_ATTRIBUTE query = {CKA_OTP_COUNTER, bytes, 8};
	OK(p11->C_GetAttributeValue(session, key, &query, 1));
	for (int at = 0; at < 8; at++) counter = counter << 8 | bytes[at];
	return counter;
}

static CK_RV say(uint64_t counter)
{
	CK_BYTE bytes[8];
	CK_ATTRIBUTE change = {CKA_OTP_COUNTER, bytes, 8};
	bytes_of(counter, bytes);
	return p11->C_SetAttributeValue(session, key, &change, 1);
}

static void next(const char *expected)
{
	struct password password = {0};
	uint64_t counter = counter_of();
	OK(give(session, key, NULL, &password));
	CHECK(strcmp(password.digits, expected) == 0 && password.counter == counter && counter_of() == counter + 1);
}

static CK_RV verify(CK_OBJECT_HANDLE by, uint64_t *counter, const char *password)
{
	CK_BYTE bytes[8];
	CK_OTP_PARAM param = {CK_OTP_COUNTER, bytes, 8};
	CK_OTP_PARAMS params = {&param, counter != NULL};
	CK_MECHANISM mechanism = {CKM_HOTP, &params, sizeof params};
	if (counter != NULL) bytes_of(*counter, bytes);
	CK_RV rv = p11->C_VerifyInit(session, &mechanism, by);
	return rv == CKR_OK ? p11->C_Verify(session, NULL, 0, (CK_BYTE *)password, strlen(password)) : rv;
}

/* A counter of the caller's changes nothing, and other parameters are as they may be. */
static void said(CK_OBJECT_HANDLE by, const char *first)
{
	CK_BYTE zero[8] = {0};
	CK_ULONG length = 8, format = CK_OTP_FORMAT_HEXADECIMAL;
	CK_FLAGS flags = CKF_USER_FRIENDLY_OTP | CKF_EXCLUDE_PIN, next_one = CKF_NEXT_OTP;
	CK_OTP_PARAM params[] = {
		{CK_OTP_COUNTER, zero, 8}, {CK_OTP_FLAGS, &flags, sizeof flags}, {CK_OTP_PIN, "1234", 4},
		{CK_OTP_OUTPUT_LENGTH, &length, sizeof length},
	};
	CK_OTP_PARAMS all = {params, 3};
	struct password password = {0};
	OK(give(session, by, &all, &password));
	CHECK(strcmp(password.digits, first) == 0 && password.counter == 0);
	all.ulCount = 4;
	OK(give(session, by, &all, &password));
	CHECK(password.length == 8 && strcmp(password.digits + 2, first) == 0);
	struct { CK_OTP_PARAM last; CK_ULONG count; } wrong[] = {
		{{CK_OTP_OUTPUT_FORMAT, &format, sizeof format}, 4}, {{CK_OTP_FLAGS, &next_one, sizeof next_one}, 4},
		{{CK_OTP_COUNTER, zero, 8}, 4}, {{CK_OTP_VALUE, zero, 8}, 4}, {{77, zero, 8}, 4},
		{{CK_OTP_OUTPUT_LENGTH, &length, 4}, 4}, {{CK_OTP_TIME, "", 0}, 9}, {{CK_OTP_TIME, "", 0}, (CK_ULONG)-1},
	};
	for (size_t at = 0; at < sizeof wrong / sizeof *wrong; at++) {
		CK_OTP_PARAM many[10] = {params[0], params[1], params[2]};
		CK_OTP_PARAMS some = {many, wrong[at].count};
		for (int to = 3; to < 10; to++) many[to] = wrong[at].last;
		EXPECT(give(session, by, &some, &password), CKR_MECHANISM_PARAM_INVALID);
	}
	/* What is said to be longer than any is not read. */
	CK_BYTE *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0);
	params[0] = (CK_OTP_PARAM){CK_OTP_COUNTER, pages + 4096 - 8, 4096};
	EXPECT(give(session, by, &all, &password), CKR_MECHANISM_PARAM_INVALID);
	OK(munmap(pages, 8192));
	/* There are no more than eight kinds, also of those that are not looked at. */
	CK_OTP_PARAM times[9];
	CK_OTP_PARAMS nine = {times, 9};
	for (int at = 0; at < 9; at++) times[at] = (CK_OTP_PARAM){CK_OTP_TIME, "", 0};
	CK_MECHANISM mechanism = {CKM_HOTP, &nine, sizeof nine};
	EXPECT(p11->C_SignInit(session, &mechanism, by), CKR_MECHANISM_PARAM_INVALID);
}

static void *ask(void *counters)
{
	CK_SESSION_HANDLE own = open_session();
	for (int at = 0; at < EACH; at++) {
		struct password password = {0};
		OK(give(own, key, NULL, &password));
		((uint64_t *)counters)[at] = password.counter;
	}
	OK(p11->C_CloseSession(own));
	return NULL;
}

static void threads(void)
{
	static uint64_t counters[THREADS][EACH];
	pthread_t all[THREADS];
	uint64_t first = counter_of(), seen = 0;
	for (int at = 0; at < THREADS; at++) CHECK(pthread_create(&all[at], NULL, ask, counters[at]) == 0);
	for (int at = 0; at < THREADS; at++) CHECK(pthread_join(all[at], NULL) == 0);
	for (int at = 0; at < THREADS * EACH; at++) seen |= 1ULL << ((&counters[0][0])[at] - first);
	CHECK(seen == (1ULL << THREADS * EACH) - 1 && counter_of() == first + THREADS * EACH);
}

/* It is for passwords alone, and there is one of it. */
static void stays(void)
{
	CK_MECHANISM digest = {CKM_SHA_1, NULL, 0}, mac = {CKM_SHA_1_HMAC, NULL, 0}, wrap = {CKM_AES_KEY_WRAP, NULL, 0};
	CK_BYTE value[32] = {1}, wrapped[64];
	CK_ULONG length = sizeof wrapped;
	CK_OBJECT_HANDLE copy;
	CK_ATTRIBUTE read = {CKA_VALUE, value, sizeof value};
	EXPECT(p11->C_GetAttributeValue(session, key, &read, 1), CKR_ATTRIBUTE_SENSITIVE);
	EXPECT(p11->C_CopyObject(session, key, NULL, 0, &copy), CKR_ACTION_PROHIBITED);
	EXPECT(p11->C_SignInit(session, &mac, key), CKR_KEY_TYPE_INCONSISTENT);
	OK(p11->C_DigestInit(session, &digest));
	EXPECT(p11->C_DigestKey(session, key), CKR_KEY_INDIGESTIBLE);
	CK_OBJECT_HANDLE by = import_key(session, CKK_AES, value, 32);
		CHECK(p11->C_WrapKey(session, &wrap, by, key, wrapped, &length) != CKR_OK);
	CK_BYTE shorter[7] = {0};
	CK_ATTRIBUTE change = {CKA_OTP_COUNTER, shorter, sizeof shorter};
	EXPECT(p11->C_SetAttributeValue(session, key, &change, 1), CKR_ATTRIBUTE_READ_ONLY);
}

static void restored(char *path, const char *expected)
{
	METASLOT_EXAMINED examined;
	struct password password = {0};
	const CK_ULONG length = strlen(path);
	OK(metaslot->CopyToken(0, CKU_USER, user_pin, 4, (CK_UTF8CHAR *)path, length, CK_FALSE, NULL, NULL, &examined));
	OK(metaslot->CopyToken(1, CKU_USER, user_pin, 4, (CK_UTF8CHAR *)path, length, CK_TRUE, NULL, NULL, &examined));
	begin(1);
	key = find();
	uint64_t counter = counter_of();
	EXPECT(give(session, key, NULL, &password), CKR_KEY_FUNCTION_NOT_PERMITTED);
	EXPECT(say(counter - 1), CKR_ATTRIBUTE_READ_ONLY);
	CHECK(counter_of() == counter);
	OK(say(counter));
	next(expected);
}

int main(int argc, char **argv)
{
	CK_MECHANISM generate = {CKM_HOTP_KEY_GEN, NULL, 0};
	CK_ULONG six = 6, mandatory = CK_OTP_PARAM_MANDATORY;
	CK_INTERFACE *interface;
	struct password password = {0};
	CK_OBJECT_HANDLE other;
	CHECK(argc == 12);
	char **passwords = argv + 2;
	load();
	OK(p11->C_Initialize(NULL));
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	metaslot = interface->pFunctionList;
	make_token();
	begin(0);

	OK(make(CK_TRUE, 0, NULL, 0, &key));
	for (int at = 0; at < 5; at++) next(passwords[at]);
	/* Another process. */
	OK(p11->C_Finalize(NULL));
	OK(p11->C_Initialize(NULL));
	begin(0);
	key = find();
	next(passwords[5]);
	said(key, passwords[0]);
	next(passwords[6]);
	uint64_t eight = 8;
	OK(verify(key, &eight, passwords[8]));
	EXPECT(verify(key, &eight, passwords[7]), CKR_SIGNATURE_INVALID);
	EXPECT(verify(key, &eight, "12345"), CKR_SIGNATURE_LEN_RANGE);
	EXPECT(verify(key, NULL, passwords[8]), CKR_MECHANISM_PARAM_INVALID);
	EXPECT(say(6), CKR_ATTRIBUTE_READ_ONLY);
	OK(say(8));
	restored(argv[1], passwords[8]);
	OK(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session));
	key = find();
	next(passwords[8]);
	next(passwords[9]);
	threads();
	stays();
	OK(say(UINT64_MAX));
	EXPECT(give(session, key, NULL, &password), CKR_KEY_EXHAUSTED);
	said(key, passwords[0]);

	/* A key of a session, and one that says so, has its caller count. */
	OK(make(CK_FALSE, CKA_OTP_LENGTH, &six, sizeof six, &other));
	EXPECT(give(session, other, NULL, &password), CKR_MECHANISM_PARAM_INVALID);
	said(other, passwords[0]);
	OK(make(CK_TRUE, CKA_OTP_COUNTER_REQUIREMENT, &mandatory, sizeof mandatory, &other));
	EXPECT(give(session, other, NULL, &password), CKR_MECHANISM_PARAM_INVALID);
	said(other, passwords[0]);
	CK_ATTRIBUTE to_session = {CKA_TOKEN, &no, 1};
	OK(p11->C_CopyObject(session, other, &to_session, 1, &other));
	said(other, passwords[0]);
	six = 5;
	EXPECT(make(CK_FALSE, CKA_OTP_LENGTH, &six, sizeof six, &other), CKR_ATTRIBUTE_VALUE_INVALID);
	EXPECT(make(CK_TRUE, CKA_PRIVATE, &no, 1, &other), CKR_TEMPLATE_INCONSISTENT);
	/* As a secret key it would be good for nothing. */
	CK_OBJECT_CLASS secret = CKO_SECRET_KEY;
	CK_KEY_TYPE hotp = CKK_HOTP;
	CK_ATTRIBUTE as_secret[] = {{CKA_CLASS, &secret, sizeof secret}, {CKA_KEY_TYPE, &hotp, sizeof hotp},
				    {CKA_VALUE, "12345678901234567890", 20}};
	EXPECT(p11->C_CreateObject(session, as_secret, 3, &other), CKR_TEMPLATE_INCONSISTENT);

	CK_ATTRIBUTE on_token = {CKA_TOKEN, &yes, 1};
	OK(p11->C_GenerateKey(session, &generate, &on_token, 1, &key));
	for (uint64_t at = 0; at < 3; at++) {
		OK(give(session, key, NULL, &password));
		CHECK(password.counter == at && password.length == 6);
		OK(verify(key, &at, password.digits));
	}
	OK(p11->C_Finalize(NULL));
	return 0;
}
