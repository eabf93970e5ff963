/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a case of testdata/profiles, a sequence of calls that a profile of the standard asks for. A line is a call, an indented
 * one what it gives: FIELD VALUE, and where the token says something else, `but VALUE: why` or, of flags, `also FLAGS: why`.
 * Every call answers CKR_OK. What is `given` is in the token before. */
#include "common.h"

#define NAME(name) {#name, name}
static const struct {
	const char *name;
	CK_ULONG value;
} names[] = {
	NAME(CKA_CERTIFICATE_TYPE), NAME(CKA_CLASS), NAME(CKA_LABEL), NAME(CKA_MODULUS), NAME(CKA_PUBLIC_EXPONENT),
	NAME(CKA_SUBJECT), NAME(CKA_TOKEN), NAME(CKA_VALUE), NAME(CKC_X_509), NAME(CKF_ASYNC_SESSION_SUPPORTED),
	NAME(CKF_DECAPSULATE), NAME(CKF_DECRYPT), NAME(CKF_DIGEST), NAME(CKF_DUAL_CRYPTO_OPERATIONS),
	NAME(CKF_ENCAPSULATE), NAME(CKF_ENCRYPT), NAME(CKF_GENERATE_KEY_PAIR), NAME(CKF_LOGIN_REQUIRED),
	NAME(CKF_MESSAGE_SIGN), NAME(CKF_MESSAGE_VERIFY), NAME(CKF_MULTI_MESSAGE),
	NAME(CKF_RESTORE_KEY_NOT_NEEDED), NAME(CKF_RNG), NAME(CKF_RW_SESSION),
	NAME(CKF_SERIAL_SESSION), NAME(CKF_SIGN), NAME(CKF_SIGN_RECOVER), NAME(CKF_TOKEN_INITIALIZED),
	NAME(CKF_TOKEN_PRESENT), NAME(CKF_UNWRAP), NAME(CKF_USER_PIN_INITIALIZED), NAME(CKF_VERIFY),
	NAME(CKF_VERIFY_RECOVER), NAME(CKF_WRAP), NAME(CKM_RSA_PKCS), NAME(CKM_RSA_PKCS_KEY_PAIR_GEN),
	NAME(CKM_SHA256_RSA_PKCS), NAME(CKM_SHA512), NAME(CKO_CERTIFICATE), NAME(CKO_DATA), NAME(CKO_PRIVATE_KEY),
	NAME(CKO_PUBLIC_KEY), NAME(CKP_AUTHENTICATION_TOKEN), NAME(CKP_BASELINE_PROVIDER), NAME(CKP_EXTENDED_PROVIDER),
	NAME(CKP_PUBLIC_CERTIFICATES_TOKEN), NAME(CKU_USER),
	{"CK_UNAVAILABLE_INFORMATION", CK_UNAVAILABLE_INFORMATION},
};
#define NAMES (sizeof names / sizeof names[0])

static const char *directory;
static int line_number;
static char *words[16];
static int count;
static CK_SLOT_ID slots[64];
static CK_ULONG slot_count, object_count, list_count;
static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE objects[16];
static CK_MECHANISM_TYPE list[1000];
static CK_BYTE message[4096], signature[4096];

/* What the last call gave. */
static struct {
	char name[40];
	CK_ULONG value;
} given[16];
static int given_count;
static CK_ATTRIBUTE template[8];
static CK_ULONG template_count;
static CK_BYTE room[8][4096];

static void give(const char *name, CK_ULONG value)
{
	snprintf(given[given_count].name, sizeof given[0].name, "%s", name);
	given[given_count++].value = value;
}

static const char *word(int at)
{
	if (at >= count) FAIL("line %d: a word is missing", line_number);
	return words[at];
}

static int named(const char *text, size_t length, CK_ULONG *value)
{
	for (size_t at = 0; at < NAMES; at++)
		if (strlen(names[at].name) == length && memcmp(names[at].name, text, length) == 0) {
			*value = names[at].value;
			return 1;
		}
	return 0;
}

/* A number, a version, or names with `|` between them. */
static CK_ULONG number(const char *text)
{
	CK_ULONG value, all = 0;
	char *end;
	if (*text >= '0' && *text <= '9') {
		all = strtoul(text, &end, 0);
		return *end == '.' ? all << 8 | strtoul(end + 1, NULL, 10) : all;
	}
	for (;; text++) {
		size_t length = strcspn(text, "|:");
		if (!named(text, length, &value)) FAIL("line %d: no name: %s", line_number, text);
		all |= value;
		text += length;
		if (*text != '|') return all;
	}
}

/* CK_TRUE, a name, @FILE, or text in which %hh is a byte. */
static CK_ULONG bytes(const char *text, CK_BYTE *out)
{
	CK_ULONG length = 0, value;
	if (strcmp(text, "CK_TRUE") == 0) {
		out[0] = CK_TRUE;
		return 1;
	}
	if (named(text, strlen(text), &value)) {
		memcpy(out, &value, sizeof value);
		return sizeof value;
	}
	if (*text == '@') {
		char path[4096];
		snprintf(path, sizeof path, "%s/%s", directory, text + 1);
		FILE *file = fopen(path, "rb");
		CHECK(file != NULL);
		length = fread(out, 1, sizeof room[0], file);
		fclose(file);
		return length;
	}
	for (; *text; text++) {
		char hex[3] = {0};
		if (*text == '%' && strlen(text) > 2) {
			memcpy(hex, text + 1, 2);
			out[length++] = (CK_BYTE)strtoul(hex, NULL, 16);
			text += 2;
		} else {
			out[length++] = (CK_BYTE)*text;
		}
	}
	return length;
}

/* From word `first` on: NAME=VALUE, NAME:LENGTH for room, or NAME to ask for the length. */
static void read_template(int first)
{
	for (template_count = 0; first < count; first++, template_count++) {
		size_t length = strcspn(words[first], "=:");
		const char *rest = words[first] + length;
		CK_ATTRIBUTE *attribute = &template[template_count];
		if (!named(words[first], length, &attribute->type)) FAIL("line %d: %s", line_number, words[first]);
		attribute->pValue = *rest ? room[template_count] : NULL;
		attribute->ulValueLen = *rest == '=' ? bytes(rest + 1, room[template_count]) : 0;
		if (*rest == ':') attribute->ulValueLen = strtoul(rest + 1, NULL, 10);
	}
}

static void give_token(void)
{
	CK_TOKEN_INFO info;
	OK(p11->C_GetTokenInfo(slots[0], &info));
	give("flags", info.flags);
	give("ulMaxSessionCount", info.ulMaxSessionCount);
	give("ulSessionCount", info.ulSessionCount);
	give("ulMaxRwSessionCount", info.ulMaxRwSessionCount);
	give("ulRwSessionCount", info.ulRwSessionCount);
	give("ulMaxPinLen", info.ulMaxPinLen);
	give("ulMinPinLen", info.ulMinPinLen);
	give("ulTotalPublicMemory", info.ulTotalPublicMemory);
	give("ulFreePublicMemory", info.ulFreePublicMemory);
	give("ulTotalPrivateMemory", info.ulTotalPrivateMemory);
	give("ulFreePrivateMemory", info.ulFreePrivateMemory);
}

static void give_info(const char *call)
{
	CK_INFO info;
	CK_SLOT_INFO slot;
	CK_MECHANISM_INFO mechanism;
	if (strcmp(call, "C_GetInfo") == 0) {
		OK(p11->C_GetInfo(&info));
		give("cryptokiVersion", (CK_ULONG)info.cryptokiVersion.major << 8 | info.cryptokiVersion.minor);
		give("flags", info.flags);
	} else if (strcmp(call, "C_GetSlotInfo") == 0) {
		OK(p11->C_GetSlotInfo(slots[0], &slot));
		give("flags", slot.flags);
	} else {
		OK(p11->C_GetMechanismInfo(slots[0], number(word(1)), &mechanism));
		give("ulMinKeySize", mechanism.ulMinKeySize);
		give("ulMaxKeySize", mechanism.ulMaxKeySize);
		give("flags", mechanism.flags);
	}
}

static void find(CK_ULONG most)
{
	CK_ULONG found;
	CHECK(object_count + most <= 16);
	OK(p11->C_FindObjects(session, objects + object_count, most, &found));
	object_count += found;
	give("count", found);
}

/* DATA:ROOM, the lengths of both. */
static void sign(void)
{
	char *end;
	CK_ULONG data = strtoul(word(1), &end, 10), length = strtoul(end + 1, NULL, 10);
	CHECK(data <= sizeof message && length <= sizeof signature);
	OK(p11->C_Sign(session, message, data, signature, &length));
	give("length", length);
	give("data", data);
}

static void generate(void)
{
	CK_MECHANISM mechanism = {number(word(1)), NULL, 0};
	CK_ULONG bits = number(word(2));
	CK_BYTE exponent[] = {1, 0, 1};
	CK_OBJECT_HANDLE public, private;
	CK_ATTRIBUTE of_public[] = {{CKA_TOKEN, &yes, 1}, {CKA_VERIFY, &yes, 1}, {CKA_MODULUS_BITS, &bits, sizeof bits},
				    {CKA_PUBLIC_EXPONENT, exponent, 3}, {CKA_LABEL, words[3], strlen(word(3))}};
	CK_ATTRIBUTE of_private[] = {{CKA_TOKEN, &yes, 1}, {CKA_SIGN, &yes, 1}, {CKA_LABEL, words[4], strlen(word(4))}};
	OK(p11->C_GenerateKeyPair(session, &mechanism, of_public, 5, of_private, 3, &public, &private));
}

static void call(void)
{
	const char *name = word(0);
	CK_MECHANISM mechanism = {0, NULL, 0};
	CK_OBJECT_HANDLE made;
	given_count = 0;
#define IS(function) (strcmp(name, #function) == 0)
	if (IS(C_Initialize)) OK(p11->C_Initialize(NULL));
	else if (IS(C_GetSlotList))
		OK(p11->C_GetSlotList(CK_TRUE, count > 1 ? NULL : slots, &slot_count));
	else if (IS(C_GetTokenInfo)) give_token();
	else if (IS(C_GetInfo) || IS(C_GetSlotInfo) || IS(C_GetMechanismInfo)) give_info(name);
	else if (IS(C_GetMechanismList))
		OK(p11->C_GetMechanismList(slots[0], count > 1 ? NULL : list, &list_count));
	else if (IS(C_OpenSession)) OK(p11->C_OpenSession(slots[0], number(word(1)), NULL, NULL, &session));
	else if (IS(C_Login)) OK(p11->C_Login(session, number(word(1)), user_pin, 4));
	else if (IS(C_FindObjectsInit)) {
		read_template(1);
		OK(p11->C_FindObjectsInit(session, template, template_count));
	} else if (IS(C_FindObjects)) find(number(word(1)));
	else if (IS(C_FindObjectsFinal)) OK(p11->C_FindObjectsFinal(session));
	else if (IS(C_GetAttributeValue)) {
		read_template(2);
		OK(p11->C_GetAttributeValue(session, objects[number(word(1))], template, template_count));
	} else if (IS(C_CreateObject)) {
		read_template(1);
		template[template_count++] = (CK_ATTRIBUTE){CKA_TOKEN, &yes, 1};
		OK(p11->C_CreateObject(session, template, template_count, &made));
	} else if (IS(C_GenerateKeyPair)) generate();
	else if (IS(C_SignInit)) {
		mechanism.mechanism = number(word(1));
		OK(p11->C_SignInit(session, &mechanism, objects[number(word(2))]));
	} else if (IS(C_Sign)) sign();
	else if (IS(C_Logout)) OK(p11->C_Logout(session));
	else if (IS(C_CloseSession)) OK(p11->C_CloseSession(session));
	else if (IS(C_CloseAllSessions)) OK(p11->C_CloseAllSessions(slots[0]));
	else if (IS(C_Finalize)) OK(p11->C_Finalize(NULL));
	else FAIL("line %d: no call: %s", line_number, name);
}

static void expect_attribute(void)
{
	CK_BYTE expected[sizeof room[0]];
	CK_ULONG type = number(word(0)), at = 0;
	while (at < template_count && template[at].type != type) at++;
	CHECK(at < template_count);
	int value = strcmp(word(1), "value") == 0;
	CK_ULONG length = value ? bytes(word(2), expected) : number(word(2));
	if (template[at].ulValueLen != length) FAIL("line %d: %lu bytes", line_number, template[at].ulValueLen);
	if (value && memcmp(expected, template[at].pValue, length) != 0) FAIL("line %d: other bytes", line_number);
}

static void expect(void)
{
	const char *name = word(0);
	CK_MECHANISM mechanism = {0, NULL, 0};
	if (strncmp(name, "CKA_", 4) == 0) {
		expect_attribute();
		return;
	}
	if (strcmp(name, "has") == 0) {
		CK_ULONG at = 0;
		while (at < list_count && list[at] != number(word(1))) at++;
		if (at == list_count) FAIL("line %d: it is not in the list", line_number);
		return;
	}
	if (strcmp(name, "verified") == 0) {
		mechanism.mechanism = number(word(2));
		OK(p11->C_VerifyInit(session, &mechanism, objects[number(word(3))]));
		OK(p11->C_Verify(session, message, given[1].value, signature, given[0].value));
		return;
	}
	CK_ULONG said = number(word(1)), wanted = said;
	if (count > 2) {
		CHECK(strchr(words[3], ':') != NULL && count > 4);
		wanted = strcmp(words[2], "also") == 0 ? said | number(words[3]) : number(words[3]);
		if (wanted == said) FAIL("line %d: there is no difference to explain", line_number);
	}
	int at = 0;
	while (at < given_count && strcmp(given[at].name, name) != 0) at++;
	if (at == given_count) FAIL("line %d: the call does not give %s", line_number, name);
	if (given[at].value != wanted) FAIL("line %d: %s is 0x%lx", line_number, name, given[at].value);
}

static int is_announced(CK_PROFILE_ID profile)
{
	CK_OBJECT_CLASS class = CKO_PROFILE;
	CK_ATTRIBUTE wanted[] = {{CKA_CLASS, &class, sizeof class}, {CKA_PROFILE_ID, &profile, sizeof profile}};
	CK_OBJECT_HANDLE found;
	CK_ULONG many;
	OK(p11->C_FindObjectsInit(session, wanted, 2));
	OK(p11->C_FindObjects(session, &found, 1, &many));
	OK(p11->C_FindObjectsFinal(session));
	return many == 1;
}

static void split(char *line)
{
	char *rest = NULL;
	count = 0;
	for (char *one = strtok_r(line, " \n", &rest); one && count < 16; one = strtok_r(NULL, " \n", &rest))
		words[count++] = one;
}

/* `given` and the profile, and afterwards all other lines. */
static void play(FILE *file, int replays)
{
	char line[1024];
	rewind(file);
	for (line_number = 1; fgets(line, sizeof line, file); line_number++) {
		int result = line[0] == ' ', before = strncmp(line, "given ", 6) == 0;
		int profile = strncmp(line, "profile ", 8) == 0;
		split(line + (before ? 6 : 0));
		if (count == 0 || line[0] == '#' || (before || profile) == replays) continue;
		if (profile) CHECK(is_announced(number(word(1))) == (strcmp(word(2), "announced") == 0));
		else if (result) expect();
		else call();
	}
}

int main(int argc, char **argv)
{
	char path[4096];
	CHECK(argc == 3);
	directory = argv[1];
	snprintf(path, sizeof path, "%s/%s", directory, argv[2]);
	FILE *file = fopen(path, "r");
	CHECK(file != NULL);
	slot_count = sizeof slots / sizeof slots[0];
	list_count = sizeof list / sizeof list[0];
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	session = open_session();
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	play(file, 0);
	OK(p11->C_Finalize(NULL));
	play(file, 1);
	fclose(file);
	return 0;
}
