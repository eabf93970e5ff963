module metaslot.example/sign

go 1.19

require github.com/miekg/pkcs11 v1.1.1
