# SPDX-License-Identifier: Apache-2.0
# A server of PostgreSQL by TLS, and no standby: both names are its.
mkdir -p /etc/metaslot/db /run/postgresql
printf '127.0.0.1 db1 db2 localhost\n' > /etc/hosts
(
    cd /mnt
    curve='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2'
    openssl req -x509 $curve -keyout ca.key -out /etc/metaslot/db/ca.pem -subj /CN=ca
    openssl req -x509 $curve -keyout db.key -out db.pem -subj /CN=db1 -addext subjectAltName=DNS:db1,DNS:db2 \
        -addext basicConstraints=critical,CA:FALSE -CA /etc/metaslot/db/ca.pem -CAkey ca.key
) 2> /dev/null
chown postgres /mnt/db.key /run/postgresql
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
runuser -u postgres -- "$programs/initdb" --no-sync -A peer -D /run/postgresql/data > /dev/null
printf 'local all all peer\nhostssl vault all 127.0.0.1/32 scram-sha-256\n' > /run/postgresql/data/pg_hba.conf
runuser -u postgres -- "$programs/postgres" -D /run/postgresql/data -c fsync=off -c unix_socket_directories=/run/postgresql \
    -c ssl=on -c ssl_cert_file=/mnt/db.pem -c ssl_key_file=/mnt/db.key 2> /run/database &
until runuser -u postgres -- "$programs/pg_isready" -q; do sleep 0.05; done
