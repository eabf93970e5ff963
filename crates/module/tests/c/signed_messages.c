/* SPDX-License-Identifier: Apache-2.0 */
/* C_SignMessage… and C_VerifyMessage…: several messages by one key. */
#include "common.h"

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE public_key, private_key;
static CK_MECHANISM hashed = {CKM_ECDSA_SHA256, NULL, 0}, raw = {CKM_ECDSA, NULL, 0};
static CK_BYTE message[] = "a message in two parts", signature[64];
static CK_ULONG length;

static void make(CK_BBOOL *always)
{
	static CK_BYTE p256[] = {6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7};
	CK_MECHANISM generate = {CKM_EC_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE public[] = {{CKA_EC_PARAMS, p256, sizeof(p256)}};
	CK_ATTRIBUTE private[] = {{CKA_ALWAYS_AUTHENTICATE, always, 1}, {CKA_PRIVATE, &yes, 1}};
	OK(p11->C_GenerateKeyPair(session, &generate, public, 1, private, 2, &public_key, &private_key));
}

static CK_RV sign(CK_ULONG bytes)
{
	length = sizeof(signature);
	return p11->C_SignMessage(session, NULL, 0, message, bytes, signature, &length);
}

static CK_RV verify(CK_ULONG bytes)
{
	return p11->C_VerifyMessage(session, NULL, 0, message, bytes, signature, length);
}

static CK_RV sign_next(CK_BYTE *part, CK_ULONG bytes, CK_BYTE *out, CK_ULONG *out_length)
{
	return p11->C_SignMessageNext(session, NULL, 0, part, bytes, out, out_length);
}

static CK_RV verify_next(CK_BYTE *part, CK_ULONG bytes, CK_BYTE *out)
{
	return p11->C_VerifyMessageNext(session, NULL, 0, part, bytes, out, 64);
}

static void several(void)
{
	EXPECT(sign(3), CKR_OPERATION_NOT_INITIALIZED);
	OK(p11->C_MessageSignInit(session, &hashed, private_key));
	OK(p11->C_MessageVerifyInit(session, &hashed, public_key));
	for (CK_ULONG bytes = 0; bytes < sizeof(message); bytes++) {
		OK(sign(bytes));
		CHECK(length == 64);
		OK(verify(bytes));
		EXPECT(verify(bytes + 1), CKR_SIGNATURE_INVALID);
		OK(verify(bytes));
	}
	/* A question about the length, and a short buffer, sign nothing and end nothing. */
	OK(p11->C_SignMessage(session, NULL, 0, message, 3, NULL, &length));
	CHECK(length == 64);
	length = 63;
	EXPECT(p11->C_SignMessage(session, NULL, 0, message, 3, signature, &length),
	       CKR_BUFFER_TOO_SMALL);
	/* Beside them each has an operation for one message. */
	OK(p11->C_SignInit(session, &hashed, private_key));
	OK(sign(3));
	length = sizeof(signature);
	OK(p11->C_Sign(session, message, 3, signature, &length));
	OK(verify(3));
	EXPECT(p11->C_MessageSignInit(session, &hashed, private_key), CKR_OPERATION_ACTIVE);
	EXPECT(p11->C_SignMessage(session, message, 1, message, 3, signature, &length),
	       CKR_MECHANISM_PARAM_INVALID);
	EXPECT(p11->C_SignMessage(session, NULL, 0, NULL, 3, signature, &length), CKR_ARGUMENTS_BAD);
	OK(sign(3));
}

static void in_parts(void)
{
	EXPECT(sign_next(message, 3, NULL, NULL), CKR_OPERATION_NOT_INITIALIZED);
	for (int round = 0; round < 2; round++) {
		OK(p11->C_SignMessageBegin(session, NULL, 0));
		EXPECT(p11->C_MessageSignFinal(session), CKR_OPERATION_ACTIVE);
		OK(sign_next(message, 7, NULL, NULL));
		OK(sign_next(message + 7, 0, NULL, NULL));
		OK(sign_next(message + 7, 3, NULL, &length));
		CHECK(length == 64);
		length = 1;
		EXPECT(sign_next(message + 7, 3, signature, &length), CKR_BUFFER_TOO_SMALL);
		CHECK(length == 64);
		OK(sign_next(message + 7, 3, signature, &length));
		OK(verify(10));
		OK(p11->C_VerifyMessageBegin(session, NULL, 0));
		OK(verify_next(message, 7, NULL));
		OK(verify_next(message + 7, 3, signature));
		OK(p11->C_VerifyMessageBegin(session, NULL, 0));
		EXPECT(verify_next(message, 7, signature), CKR_SIGNATURE_INVALID);
		EXPECT(verify_next(message, 7, signature), CKR_OPERATION_NOT_INITIALIZED);
	}
	/* The wrong order ends the message, and what Init chose stays. */
	OK(p11->C_SignMessageBegin(session, NULL, 0));
	EXPECT(sign(3), CKR_OPERATION_ACTIVE);
	EXPECT(sign_next(message, 3, NULL, NULL), CKR_OPERATION_NOT_INITIALIZED);
	OK(p11->C_SignMessageBegin(session, NULL, 0));
	EXPECT(p11->C_SignMessageBegin(session, NULL, 0), CKR_OPERATION_ACTIVE);
	EXPECT(sign_next(message, 3, NULL, NULL), CKR_OPERATION_NOT_INITIALIZED);
	OK(sign(3));
}

static void ends(void)
{
	OK(p11->C_MessageSignFinal(session));
	EXPECT(p11->C_MessageSignFinal(session), CKR_OPERATION_NOT_INITIALIZED);
	EXPECT(sign(3), CKR_OPERATION_NOT_INITIALIZED);
	OK(verify(3));
	OK(p11->C_SessionCancel(session, CKF_VERIFY | CKF_MESSAGE_SIGN));
	OK(verify(3));
	OK(p11->C_SessionCancel(session, CKF_MESSAGE_VERIFY));
	EXPECT(verify(3), CKR_OPERATION_NOT_INITIALIZED);
	OK(p11->C_MessageSignInit(session, &hashed, private_key));
	OK(p11->C_MessageSignInit(session, NULL, 0));
	EXPECT(sign(3), CKR_OPERATION_NOT_INITIALIZED);
	/* What is signed in one part only has no other message. */
	OK(p11->C_MessageSignInit(session, &raw, private_key));
	EXPECT(p11->C_SignMessageBegin(session, NULL, 0), CKR_FUNCTION_NOT_SUPPORTED);
	OK(sign(20));
	OK(p11->C_MessageSignFinal(session));
	EXPECT(p11->C_MessageSignInit(session, &hashed, public_key), CKR_KEY_FUNCTION_NOT_PERMITTED);
	OK(p11->C_MessageSignInit(session, &hashed, private_key));
	OK(p11->C_SignMessageBegin(session, NULL, 0));
	OK(p11->C_DestroyObject(session, private_key));
	EXPECT(sign_next(message, 3, NULL, NULL), CKR_OPERATION_NOT_INITIALIZED);
}

/* Each message is a use of the key. */
static void always(void)
{
	make(&yes);
	OK(p11->C_MessageSignInit(session, &hashed, private_key));
	for (int round = 0; round < 2; round++) {
		EXPECT(sign(3), CKR_USER_NOT_LOGGED_IN);
		OK(p11->C_Login(session, CKU_CONTEXT_SPECIFIC, user_pin, 4));
		OK(sign(3));
		EXPECT(p11->C_SignMessageBegin(session, NULL, 0), CKR_USER_NOT_LOGGED_IN);
		OK(p11->C_Login(session, CKU_CONTEXT_SPECIFIC, user_pin, 4));
		OK(p11->C_SignMessageBegin(session, NULL, 0));
		length = sizeof(signature);
		OK(sign_next(message, 3, signature, &length));
	}
}

/* What passwords sign has no data: a part that is refused is not counted. */
static void refuses_parts(void)
{
	CK_BYTE counter[8] = {0};
	CK_OTP_PARAM said = {CK_OTP_COUNTER, counter, sizeof(counter)};
	CK_OTP_PARAMS params = {&said, 1};
	CK_MECHANISM generate = {CKM_HOTP_KEY_GEN, NULL, 0}, password = {CKM_HOTP, &params, sizeof(params)};
	CK_OBJECT_HANDLE key;
	OK(p11->C_GenerateKey(session, &generate, NULL, 0, &key));
	OK(p11->C_MessageSignFinal(session));
	OK(p11->C_MessageSignInit(session, &password, key));
	OK(p11->C_SignMessageBegin(session, NULL, 0));
	EXPECT(sign_next(message, 3, NULL, NULL), CKR_DATA_LEN_RANGE);
	OK(p11->C_MessageVerifyInit(session, &password, key));
	OK(p11->C_VerifyMessageBegin(session, NULL, 0));
	EXPECT(verify_next(message, 3, NULL), CKR_DATA_LEN_RANGE);
	OK(p11->C_MessageVerifyFinal(session));
}

static void check_flags(void)
{
	CK_FLAGS messages = CKF_MESSAGE_SIGN | CKF_MESSAGE_VERIFY | CKF_MULTI_MESSAGE;
	CK_MECHANISM_INFO info;
	OK(p11->C_GetMechanismInfo(0, CKM_ECDSA_SHA256, &info));
	CHECK((info.flags & 0x3e) == messages);
	OK(p11->C_GetMechanismInfo(0, CKM_AES_CBC, &info));
	CHECK((info.flags & 0x3e) == 0);
}

int main(void)
{
	session = begin_as_user();
	check_flags();
	make(&no);
	several();
	in_parts();
	ends();
	always();
	refuses_parts();
	OK(p11->C_MessageVerifyInit(session, &hashed, public_key));
	OK(p11->C_Finalize(NULL));
	return 0;
}
