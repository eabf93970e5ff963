/* SPDX-License-Identifier: Apache-2.0 */
/* Another thread changes what is opened or signed while that goes on. A caller must not allow it; where its input lies in memory that it
 * shares with someone whom it does not trust, what comes of it is still what comes of one of the two contents, and gives no key away. */
#include "common.h"

#define ROUNDS 3000
/* So long that both readings of it take a while. */
#define MESSAGE (1 << 18)

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE public_key, private_key;
static _Atomic(volatile CK_BYTE *) place;
static atomic_int change;

/* Changes a byte back and forth. */
static void *changer(void *unused)
{
	(void)unused;
	for (;;) {
		volatile CK_BYTE *byte = place;
		if (byte != NULL) *byte ^= (CK_BYTE)change;
		/* About as long as one reading. */
		for (volatile int at = 0; at < 50; at++)
			;
	}
	return NULL;
}

static void begin(CK_BYTE *byte, int bits)
{
	change = bits;
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
	implicit_rejection();
	OK(p11->C_Finalize(NULL));
	return 0;
}
