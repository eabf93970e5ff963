/* SPDX-License-Identifier: Apache-2.0 */
/* A TLS 1.3 server with many threads, each of which accepts, shakes hands, says one line and closes. The key, RSA or of a curve, is in a
 * file or in a token. It ends when its standard input does, and prints what it did and what processor time it took.
 *
 *   cc -O2 -I ../include tls_server.c -o tls_server -lssl -lcrypto -lpthread -ldl
 *   ./tls_server 4433 16 cert.pem key.pem
 *   ./tls_server 4433 16 cert.pem libmetaslot.so PIN [LABEL]
 *
 * With a token, every thread has a session of its own, as the standard wants it, and the signature is one C_SignInit and one
 * C_Sign: threads that sign at the same time are what the lanes live on.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <dlfcn.h>
#include <metaslot/pkcs11.h>
#include <netinet/in.h>
#include <openssl/ec.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static SSL_CTX *context;
static int listener;
static atomic_long handshakes, failures;
static CK_FUNCTION_LIST *p11;
static CK_OBJECT_HANDLE key;

static void die(const char *what)
{
	fprintf(stderr, "tls_server: %s\n", what);
	exit(1);
}

static void ok(CK_RV rv, const char *what)
{
	if (rv == CKR_OK) return;
	fprintf(stderr, "tls_server: %s: 0x%lx\n", what, rv);
	exit(1);
}

static CK_SESSION_HANDLE session(void)
{
	static _Thread_local CK_SESSION_HANDLE own;
	if (own == 0) ok(p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own), "C_OpenSession");
	return own;
}

/* What OpenSSL has padded already (RSA-PSS, for TLS 1.3) is exponentiated in the token. */
static int exponentiate(int length, const unsigned char *from, unsigned char *to, RSA *rsa, int padding)
{
	CK_MECHANISM raw = {CKM_RSA_X_509, NULL, 0};
	CK_ULONG room = (CK_ULONG)RSA_size(rsa);
	if (padding != RSA_NO_PADDING) return -1;
	if (p11->C_SignInit(session(), &raw, key) != CKR_OK) return -1;
	if (p11->C_Sign(session(), (CK_BYTE *)from, (CK_ULONG)length, to, &room) != CKR_OK) return -1;
	return (int)room;
}

/* The token gives r beside s, TLS wants them in DER. */
static int sign(int type, const unsigned char *digest, int length, unsigned char *der, unsigned int *written,
		const BIGNUM *inverse, const BIGNUM *r, EC_KEY *unused)
{
	CK_MECHANISM ecdsa = {CKM_ECDSA, NULL, 0};
	CK_BYTE raw[2 * 66];
	CK_ULONG room = sizeof raw;
	(void)type, (void)inverse, (void)r, (void)unused;
	if (p11->C_SignInit(session(), &ecdsa, key) != CKR_OK) return 0;
	if (p11->C_Sign(session(), (CK_BYTE *)digest, (CK_ULONG)length, raw, &room) != CKR_OK) return 0;
	ECDSA_SIG *signature = ECDSA_SIG_new();
	int half = (int)room / 2;
	ECDSA_SIG_set0(signature, BN_bin2bn(raw, half, NULL), BN_bin2bn(raw + half, half, NULL));
	*written = (unsigned int)i2d_ECDSA_SIG(signature, &der);
	ECDSA_SIG_free(signature);
	return 1;
}

static void log_in(const char *module, const char *pin, const char *label, CK_KEY_TYPE type)
{
	CK_RV (*list)(CK_FUNCTION_LIST **);
	CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
	CK_ATTRIBUTE wanted[] = {{CKA_CLASS, &class, sizeof class},
				 {CKA_KEY_TYPE, &type, sizeof type},
				 {CKA_LABEL, (char *)label, label ? strlen(label) : 0}};
	CK_ULONG found = 0;
	void *library = dlopen(module, RTLD_NOW);
	if (library == NULL) die(dlerror());
	*(void **)&list = dlsym(library, "C_GetFunctionList");
	if (list == NULL) die("not a PKCS#11 module");
	ok(list(&p11), "C_GetFunctionList");
	ok(p11->C_Initialize(NULL), "C_Initialize");
	ok(p11->C_Login(session(), CKU_USER, (CK_UTF8CHAR *)pin, strlen(pin)), "C_Login");
	ok(p11->C_FindObjectsInit(session(), wanted, label ? 3 : 2), "C_FindObjectsInit");
	ok(p11->C_FindObjects(session(), &key, 1, &found), "C_FindObjects");
	ok(p11->C_FindObjectsFinal(session()), "C_FindObjectsFinal");
	if (found == 0) die("no such key in the token");
}

static void use_token(const char *module, const char *pin, const char *label)
{
	EVP_PKEY *public = X509_get0_pubkey(SSL_CTX_get0_certificate(context));
	EVP_PKEY *private = EVP_PKEY_new();
	if (EVP_PKEY_is_a(public, "RSA")) {
		log_in(module, pin, label, CKK_RSA);
		RSA_METHOD *method = RSA_meth_dup(RSA_PKCS1_OpenSSL());
		RSA_meth_set_priv_enc(method, exponentiate);
		RSA *rsa = RSAPublicKey_dup(EVP_PKEY_get0_RSA(public));
		RSA_set_method(rsa, method);
		EVP_PKEY_assign_RSA(private, rsa);
	} else {
		log_in(module, pin, label, CKK_EC);
		EC_KEY_METHOD *method = EC_KEY_METHOD_new(EC_KEY_OpenSSL());
		EC_KEY_METHOD_set_sign(method, sign, NULL, NULL);
		EC_KEY *ec = EC_KEY_dup(EVP_PKEY_get0_EC_KEY(public));
		EC_KEY_set_method(ec, method);
		EVP_PKEY_assign_EC_KEY(private, ec);
	}
	if (SSL_CTX_use_PrivateKey(context, private) != 1) die("the token's key is not the certificate's");
}

static void *serve(void *argument)
{
	(void)argument;
	for (;;) {
		int connection = accept(listener, NULL, NULL);
		if (connection < 0) return NULL;
		SSL *ssl = SSL_new(context);
		SSL_set_fd(ssl, connection);
		int good = SSL_accept(ssl) == 1 && SSL_write(ssl, "hello\n", 6) == 6;
		atomic_fetch_add(good ? &handshakes : &failures, 1);
		SSL_free(ssl);
		close(connection);
	}
}

static void listen_on(unsigned short port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int one = 1;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0) die("the port is taken");
	if (listen(listener, 1024) != 0) die("listen");
}

int main(int argc, char **argv)
{
	if (argc < 5 || argc > 7) {
		fprintf(stderr, "usage: tls_server PORT THREADS CERTIFICATE KEY | MODULE PIN [LABEL]\n");
		return 2;
	}
	context = SSL_CTX_new(TLS_server_method());
	SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	SSL_CTX_set_num_tickets(context, 0); /* every handshake is a full one */
	if (SSL_CTX_use_certificate_file(context, argv[3], SSL_FILETYPE_PEM) != 1) die("no certificate");
	if (argc > 5) use_token(argv[4], argv[5], argc > 6 ? argv[6] : NULL);
	else if (SSL_CTX_use_PrivateKey_file(context, argv[4], SSL_FILETYPE_PEM) != 1) die("no key");
	listen_on((unsigned short)atoi(argv[1]));
	for (int at = atoi(argv[2]); at > 0; at--) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, serve, NULL) != 0) die("no thread");
	}
	printf("ready\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	printf("{\"handshakes\": %ld, \"failures\": %ld, \"cpu_seconds\": %.6f}\n", (long)handshakes, (long)failures,
	       (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
		       1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec));
	return 0;
}
