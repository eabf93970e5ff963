/* SPDX-License-Identifier: Apache-2.0 */
/* Another thread changes what is opened, signed or verified while that goes on. A caller must not allow it; where its input lies in memory that it
 * shares with someone whom it does not trust, what comes of it is still what comes of one of the two contents, and gives no key away. */
#include "common.h"

#define ROUNDS 3000
/* So long that both readings of it take a while. */
#define MESSAGE (1 << 18)

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE public_key, private_key;
static _Atomic(volatile CK_BYTE *) place;
static volatile CK_BYTE change[32];
static atomic_int changed;

/* Changes bytes back and forth. */
static void *changer(void *unused)
{
	(void)unused;
	for (;;) {
		volatile CK_BYTE *bytes = place;
		for (int at = 0; bytes != NULL && at < changed; at++) bytes[at] ^= change[at];
		/* About as long as one reading. */
		for (volatile int at = 0; at < 50; at++)
			;
	}
	return NULL;
}

static void begin(CK_BYTE *byte, int bits)
{
	change[0] = (CK_BYTE)bits;
	changed = 1;
	place = byte;
}

/* One of what came of both contents, and nothing else. */
static void judge(const char *what, const CK_BYTE *out, CK_BYTE both[2][256], CK_ULONG length, int *counts)
{
	for (int at = 0; at < 2; at++)
		if (memcmp(out, both[at], length) == 0) {
			counts[at]++;
			return;
		}
	FAIL("%s: what came of it is that of neither content", what);
}

static void opened(CK_MECHANISM *mechanism, CK_BYTE *from, CK_ULONG length, CK_BYTE out[32])
{
	CK_OBJECT_HANDLE key;
	CK_ATTRIBUTE template[] = {{CKA_SENSITIVE, &no, 1}, {CKA_EXTRACTABLE, &yes, 1}};
	CK_ATTRIBUTE value = {CKA_VALUE, out, 32};
	OK(p11->C_DecapsulateKey(session, mechanism, private_key, template, 2, from, length, &key));
	OK(p11->C_GetAttributeValue(session, key, &value, 1));
	OK(p11->C_DestroyObject(session, key));
}

static void decapsulate(void)
{
	CK_MECHANISM generate = {CKM_ML_KEM_KEY_PAIR_GEN, NULL, 0}, kem = {CKM_ML_KEM, NULL, 0};
	CK_ML_KEM_PARAMETER_SET_TYPE set = CKP_ML_KEM_768;
	CK_ATTRIBUTE public = {CKA_PARAMETER_SET, &set, sizeof(set)};
	static CK_BYTE ciphertext[1088], both[2][256], out[32];
	CK_ULONG length = sizeof(ciphertext);
	CK_OBJECT_HANDLE key;
	int counts[2] = {0, 0};
	OK(p11->C_GenerateKeyPair(session, &generate, &public, 1, NULL, 0, &public_key, &private_key));
	OK(p11->C_EncapsulateKey(session, &kem, public_key, NULL, 0, ciphertext, &length, &key));
	opened(&kem, ciphertext, length, both[0]);
	ciphertext[0] ^= 1;
	opened(&kem, ciphertext, length, both[1]);
	begin(ciphertext, 1);
	for (int at = 0; at < ROUNDS; at++) {
		opened(&kem, ciphertext, length, out);
		judge("CKM_ML_KEM", out, both, 32, counts);
	}
	place = NULL;
	printf("CKM_ML_KEM: %d and %d\n", counts[0], counts[1]);
}

static void sign(CK_BYTE *message, CK_BYTE out[256])
{
	CK_MECHANISM eddsa = {CKM_EDDSA, NULL, 0};
	CK_ULONG length = 64;
	OK(p11->C_SignInit(session, &eddsa, private_key));
	OK(p11->C_Sign(session, message, MESSAGE, out, &length));
}

static void twice_read_messages(void)
{
	CK_MECHANISM generate = {CKM_EC_EDWARDS_KEY_PAIR_GEN, NULL, 0};
	CK_BYTE curve[] = {0x06, 0x03, 0x2b, 0x65, 0x70};
	CK_ATTRIBUTE public = {CKA_EC_PARAMS, curve, sizeof(curve)};
	static CK_BYTE message[MESSAGE], both[2][256], out[256];
	int counts[2] = {0, 0};
	OK(p11->C_GenerateKeyPair(session, &generate, &public, 1, NULL, 0, &public_key, &private_key));
	sign(message, both[0]);
	message[0] = 1;
	sign(message, both[1]);
	begin(message, 1);
	for (int at = 0; at < ROUNDS / 20; at++) {
		sign(message, out);
		judge("CKM_EDDSA", out, both, 64, counts);
	}
	place = NULL;
	printf("CKM_EDDSA: %d and %d\n", counts[0], counts[1]);
}

/* Neither content of the signature is one: s is 1, R is 0 or B - hA, where h is what the message and an R of 0 hash to. What takes
 * the one to hash and the other to compare has verified what nobody signed. */
static void twice_read_signatures(void)
{
	CK_OBJECT_CLASS class = CKO_PUBLIC_KEY;
	CK_KEY_TYPE type = CKK_EC_MONTGOMERY;
	CK_BYTE curve[] = {0x06, 0x03, 0x2b, 0x65, 0x6e};
	CK_BYTE point[] = {0x04, 0x20, 0x07, 0xa3, 0x7c, 0xbc, 0x14, 0x20, 0x93, 0xc8, 0xb7, 0x55, 0xdc, 0x1b, 0x10, 0xe8, 0x6c, 0xb4,
			   0x26, 0x37, 0x4a, 0xd1, 0x6a, 0xa8, 0x53, 0xed, 0x0b, 0xdf, 0xc0, 0xb2, 0xb8, 0x6d, 0x1c, 0x7c};
	CK_BYTE other[] = {0xfd, 0x78, 0x5f, 0x09, 0x45, 0xd7, 0x7a, 0x5c, 0xf9, 0x6c, 0x7a, 0x13, 0x42, 0x9d, 0x1c, 0x1f,
			   0xa7, 0xe0, 0x71, 0xd0, 0xcb, 0x17, 0x94, 0xa0, 0x59, 0x66, 0x57, 0xab, 0x2b, 0xce, 0xa6, 0x19};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_KEY_TYPE, &type, sizeof(type)},
				   {CKA_EC_PARAMS, curve, sizeof(curve)}, {CKA_EC_POINT, point, sizeof(point)}};
	CK_XEDDSA_PARAMS params = {CKM_SHA512};
	CK_MECHANISM mechanism = {CKM_XEDDSA, &params, sizeof(params)};
	static CK_BYTE message[MESSAGE], signature[64];
	OK(p11->C_CreateObject(session, template, 4, &public_key));
	signature[32] = 1;
	for (int at = 0; at < 32; at++) change[at] = other[at];
	changed = 32;
	place = signature;
	for (int at = 0; at < ROUNDS / 10; at++) {
		OK(p11->C_VerifyInit(session, &mechanism, public_key));
		EXPECT(p11->C_Verify(session, message, MESSAGE, signature, 64), CKR_SIGNATURE_INVALID);
	}
	place = NULL;
}

static void decrypt(CK_BYTE *from, CK_BYTE out[256])
{
	CK_MECHANISM rsa = {CKM_RSA_PKCS, NULL, 0};
	CK_ULONG length = 256;
	memset(out, 0, 256);
	OK(p11->C_DecryptInit(session, &rsa, private_key));
	OK(p11->C_Decrypt(session, from, 256, out, &length));
}

static void implicit_rejection(void)
{
	CK_MECHANISM generate = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
	CK_ULONG bits = 2048;
	CK_ATTRIBUTE public[] = {{CKA_MODULUS_BITS, &bits, sizeof(bits)}, {CKA_ENCRYPT, &yes, 1}};
	CK_ATTRIBUTE private = {CKA_DECRYPT, &yes, 1};
	CK_MECHANISM rsa = {CKM_RSA_PKCS, NULL, 0};
	static CK_BYTE ciphertext[256], both[2][256], out[256];
	CK_ULONG length = sizeof(ciphertext);
	int counts[2] = {0, 0};
	OK(p11->C_GenerateKeyPair(session, &generate, public, 2, &private, 1, &public_key, &private_key));
	/* The other one's padding is bad, as good as always. */
	OK(p11->C_EncryptInit(session, &rsa, public_key));
	OK(p11->C_Encrypt(session, (CK_BYTE *)"message", 7, ciphertext, &length));
	decrypt(ciphertext, both[0]);
	ciphertext[200] ^= 2;
	decrypt(ciphertext, both[1]);
	begin(ciphertext + 200, 2);
	for (int at = 0; at < ROUNDS / 20; at++) {
		decrypt(ciphertext, out);
		judge("CKM_RSA_PKCS", out, both, 256, counts);
	}
	place = NULL;
	printf("CKM_RSA_PKCS: %d and %d\n", counts[0], counts[1]);
}

int main(void)
{
	pthread_t thread;
	load();
	OK(p11->C_Initialize(NULL));
	session = open_session();
	CHECK(pthread_create(&thread, NULL, changer, NULL) == 0);
	decapsulate();
	twice_read_messages();
	twice_read_signatures();
	implicit_rejection();
	OK(p11->C_Finalize(NULL));
	return 0;
}
