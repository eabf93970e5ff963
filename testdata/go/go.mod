module metaslot.example/clients

go 1.19

require github.com/ThalesIgnite/crypto11 v1.2.5

require github.com/miekg/pkcs11 v1.1.1

require (
	github.com/pkg/errors v0.8.1 // indirect
	github.com/thales-e-security/pool v0.0.2 // indirect
)
