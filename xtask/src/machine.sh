#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `cargo xtask machine` runs in its virtual machine, as root, when systemd has started it: a line for each check.
export HOME=/root SYSTEMD_COLORS=0 SYSTEMD_PAGER=cat
umask 022
unit=/etc/systemd/system
conf=/etc/metaslot/metaslotd.toml
sealed=/etc/credstore.encrypted/web

# Runs a function, which fails at its first command that does, and shows what it said where it failed.
check() { # SENTENCE FUNCTION
    (set -ex; $2) > /run/said 2>&1 < /dev/null
    if [ $? = 0 ]; then
        echo "ok: $1"
    else
        echo "FAILED: $1"
        tail --lines 60 /run/said | sed 's/^/    /'
        journalctl --quiet --output short-monotonic --no-hostname --lines 12 --unit 'metaslotd*' | sed 's/^/    journal: /'
        tail --lines 5 /var/log/nginx/error.log | sed 's/^/    nginx: /'
    fi
}
not() { ! "$@"; }
is() { # VALUE COMMAND...: what it prints, however it ends.
    test "$("${@:2}")" = "$1"
}
has() { # PATTERN COMMAND...: in what it prints, also where it fails.
    "${@:2}" > /run/printed 2>&1 || true
    grep -E -e "$1" /run/printed || { tail --lines 20 /run/printed; false; }
}
until_it() { # COMMAND...: for a minute at most, of which nothing is said.
    local tries=0
    until { "$@"; } > /dev/null 2>&1; do
        test $((tries += 1)) -lt 300
        sleep 0.2
    done
}
# A handshake of TLS, with a signature of the daemon's.
export CURL_CA_BUNDLE=/etc/metaslot/site.pem
served() { is hello curl --silent --show-error --max-time 60 "$@" https://localhost/; }
# A program in the control group of a service, with the user of nginx and its configuration.
as() { # SERVICE COMMAND...
    systemd-run --quiet --wait --pipe --collect --unit="$1" --uid=www-data --setenv=METASLOT_CONF=/etc/metaslot/metaslot-daemon.toml -- "${@:2}"
}
# Gives a service the key that nginx's has, or takes it away.
gives() { # SERVICE
    printf '[[client]]\nservices = ["%s"]\ntoken = "web"\nkeys = ["site"]\noperations = ["sign"]\n' "$1" >> $conf
    systemctl reload metaslotd
}
takes() {
    cp /srv/as-of-the-page $conf
    systemctl reload metaslotd
}
verified() { openssl dgst -sha256 -verify /srv/site.pub -signature "$1" /srv/text; }

# What the page of one host says, under the systemd that it is written for.

the_package() {
    dpkg --install /root/metaslot.deb
    is disabled systemctl is-enabled metaslotd
    is inactive systemctl is-active metaslotd
    is inactive systemctl is-active metaslotd.socket
    has '\bmetaslot\b' id --name --groups metaslotd
    is 'metaslotd 700' stat --format '%U %a' /var/lib/metaslotd
}
the_page() {
    bash -ex /root/page.sh > /run/page 2>&1 || { cat /run/page; false; }
    grep -x hello /run/page
    # Connections, calls, and operations of nginx's workers.
    grep -E '^www-data +nginx.service +[0-9]+ +[0-9]+ +[1-9]' /run/page
    cp $conf /srv/as-of-the-page
    openssl x509 -in /etc/metaslot/site.pem -noout -pubkey > /srv/site.pub
    echo text > /srv/text
}
sealed_by_the_tpm() {
    umask 077
    systemd-creds decrypt --name=web $sealed /srv/pin
    systemd-creds encrypt --name=web --with-key=tpm2 /srv/pin $sealed
    # The TPM alone, without the key in a file that the page's line would do with.
    rm --force /var/lib/systemd/credential.secret
    systemctl restart metaslotd
    served
}
# From now on a start takes longer than the library waits where nothing listens.
slow() {
    printf '[Service]\nExecStartPre=sleep 6\n' > $unit/metaslotd.service.d/slow.conf
    systemctl daemon-reload
}
not_slow() {
    rm $unit/metaslotd.service.d/slow.conf
    systemctl daemon-reload
}
started_again() {
    not_slow
    has '^active$' systemctl is-active metaslotd
    systemctl status nginx
    served
}
the_walls() {
    has ' 0\.6 ' systemd-analyze security metaslotd
    local status=/run/status
    cat "/proc/$(systemctl show --property=MainPID --value metaslotd)/status" > $status
    grep -E '^NoNewPrivs:.1$' $status
    grep -E '^Seccomp:.2$' $status
    grep -E '^CapBnd:.0+$' $status
    # Keys are in memory that is locked.
    grep -E '^VmLck:\s+[1-9]' $status
    not has 'not fenced' journalctl --quiet --output cat --unit metaslotd
}

# Who has what.

another_service() {
    not has 'private\+public' as other metaslot key list
    has 'no user PIN given' as other metaslot sign --key site --in /srv/text
    gives cgroup:/system.slice/signer.service
    as signer metaslot sign --key site --in /srv/text > /run/signature
    verified /run/signature
    has 'no user PIN given' as other metaslot sign --key site --in /srv/text
    takes
    has 'no user PIN given' as signer metaslot sign --key site --in /srv/text
}

# When it goes away.

# The daemon goes, and is there again.
goes() { # COMMAND...
    local before
    before=$(systemctl show --property=MainPID --value metaslotd)
    "$@"
    until_it not is "$before" systemctl show --property=MainPID --value metaslotd
    until_it is active systemctl is-active metaslotd
}
no_core_dump() {
    mkdir --parents /var/core
    printf '#!/bin/sh\nexec /bin/cat > "/var/core/$1"\n' > /usr/local/bin/core
    chmod 755 /usr/local/bin/core
    # A handler is not kept by LimitCORE, as the first program shows.
    echo '|/usr/local/bin/core %e' > /proc/sys/kernel/core_pattern
    systemd-run --quiet --unit=dies --property=LimitCORE=0 sleep 100
    systemctl kill --signal=ABRT dies
    until_it test -s /var/core/sleep
    goes systemctl kill --signal=ABRT metaslotd
    has 'status=6/ABRT' journalctl --quiet --output cat --unit metaslotd
    is sleep ls /var/core
    served
}
by_the_socket() {
    systemctl stop metaslotd
    mkdir --parents $unit/metaslotd.socket.d
    printf '[Socket]\nSocketGroup=metaslot\n' > $unit/metaslotd.socket.d/group.conf
    systemctl daemon-reload
    systemctl enable --now metaslotd.socket
    is inactive systemctl is-active metaslotd
    served
    is active systemctl is-active metaslotd
}
handshakes() { while [ -e /run/going ]; do if served; then echo served; else echo lost; fi; done; }
restarted() {
    slow
    touch /run/going
    handshakes 2> /run/noted > /run/handshakes &
    goes systemctl restart metaslotd
    goes systemctl kill --signal=KILL metaslotd
    goes dpkg --install /root/metaslot.deb
    sleep 2
    rm /run/going
    wait
    not_slow
    not grep --max-count=1 lost /run/handshakes
    test "$(wc --lines < /run/handshakes)" -ge 5
}
not_started_again() { # STATUS
    not systemctl restart metaslotd
    # What would start it again does so after a second.
    sleep 3
    is "$1" systemctl show --property=ExecMainStatus --value metaslotd
    is failed systemctl is-active metaslotd
    not systemctl is-active metaslotd.socket
}
a_wrong_start() {
    cp $sealed /run/right
    printf 00000000 | systemd-creds encrypt --name=web --with-key=tpm2 - $sealed
    not_started_again 77
    cp /run/right $sealed
    echo 'sockets = 1' >> $conf
    not_started_again 78
    cp /srv/as-of-the-page $conf
    systemctl start metaslotd.socket metaslotd
    served
}

# Clocks that jump.

at_another_time() { # HOW
    # After three wrong ones the next waits, by a clock that does not jump.
    (umask 077; printf 00000000 > /run/wrong)
    for _ in 1 2 3; do has CKR_PIN_INCORRECT daemon metaslot key list --pin-source /run/wrong; done
    date --set "$1"
    # The first try after that makes it a failure of now.
    until_it has 'private\+public' daemon metaslot key list --pin-source /srv/pin
    served --insecure
    goes systemctl restart metaslotd
    served --insecure
    goes systemctl kill --signal=KILL metaslotd
    served --insecure
}
daemon() { METASLOT_CONF=/etc/metaslot/metaslot-daemon.toml "$@"; }
later() { at_another_time '+3 days'; }
earlier() { at_another_time '-30 days'; }
the_time_again() {
    date --set '+27 days'
    served
}

# From another machine.

guest() { runuser --user guest -- "$@"; }
by_vsock() {
    modprobe vsock_loopback
    useradd guest
    gives cgroup:/system.slice/forwards.service
    systemd-run --quiet --unit=forwards --property=User=www-data socat VSOCK-LISTEN:7443,fork UNIX-CONNECT:/run/metaslotd/socket
    openssl dgst -sha256 -binary -out /run/hash /srv/text
    install -d -o guest /run/guest
    local client=/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-client.so
    # This machine's own number; 2 is that of a host.
    until_it guest env P11_KIT_SERVER_ADDRESS='vsock:cid=1;port=7443' pkcs11-tool --module $client \
        --sign --mechanism ECDSA --signature-format openssl --label site --input-file /run/hash --output-file /run/guest/signature
    verified /run/guest/signature
    # It is known as what passes its bytes on.
    has '^www-data +forwards.service +[0-9]+ +[0-9]+ +1 ' metaslot stat
    not has '^guest' metaslot stat
}
by_vsock_with_our_library() {
    runuser --user guest -- socat UNIX-LISTEN:/run/guest/vault,fork,mode=600 VSOCK-CONNECT:1:7443 &
    local forwards=$!
    printf '[[foreign]]\nname = "vault"\nsocket = "/run/guest/vault"\n' > /run/guest/metaslot.toml
    until_it test -S /run/guest/vault
    guest env METASLOT_CONF=/run/guest/metaslot.toml metaslot sign --key site --in /srv/text > /run/guest/signature
    verified /run/guest/signature
    takes
    has 'no user PIN given' guest env METASLOT_CONF=/run/guest/metaslot.toml metaslot sign --key site --in /srv/text
    kill $forwards
    systemctl stop forwards
}
certificate() { # FILE NAME
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -keyout "$1.key" -out "$1.pem" -subj "/CN=$2" "${@:3}"
}
by_tls() {
    local tls=/etc/metaslot/tls far=/etc/metaslot/connect/vault
    mkdir --parents $tls $far $unit/metaslotd.service.d
    certificate /run/ca authority
    for name in localhost web1.example; do
        certificate $tls/$name $name -CA /run/ca.pem -CAkey /run/ca.key -addext "subjectAltName=DNS:$name" -addext basicConstraints=critical,CA:false
    done
    cp /run/ca.pem $tls/clients.pem
    cp /run/ca.pem $far/ca.pem
    mv $tls/web1.example.pem $far/certificate.pem
    mv $tls/web1.example.key $far/key.pem
    echo FAR=localhost:7443 > $far/environment
    chown --recursive metaslotd: $tls $far
    sed -i "s,^\[daemon\],&\nlisten = \"127.0.0.1:7443\"\ncertificate = \"$tls/localhost.pem\"\nkey = \"$tls/localhost.key\"\nclient-ca = \"$tls/clients.pem\"," $conf
    printf '[[client]]\nservices = ["tls:web1.example"]\ntoken = "web"\nkeys = ["site"]\noperations = ["sign"]\n' >> $conf
    printf '[Service]\nPrivateNetwork=no\nIPAddressAllow=localhost\nRestrictAddressFamilies=AF_INET AF_INET6\n' > $unit/metaslotd.service.d/network.conf
    systemctl daemon-reload
    systemctl restart metaslotd
    systemctl start metaslotd-connect@vault
    printf '[[foreign]]\nname = "vault"\nsocket = "/run/metaslotd-vault/socket"\n' > /run/far.toml
    METASLOT_CONF=/run/far.toml metaslot sign --key site --in /srv/text > /run/signature
    verified /run/signature
    has '^tls +web1.example +[0-9]+ +[0-9]+ +1 ' metaslot stat
    goes systemctl restart metaslotd
    METASLOT_CONF=/run/far.toml metaslot sign --key site --in /srv/text > /run/signature
    verified /run/signature
}

# A proxy of TLS, whose records the kernel writes.

records() { awk '$1 == "TlsTxSw" { print $2 }' /proc/net/tls_stat; }
kernel_tls() {
    printf 'server { listen 127.0.0.1:8080; location / { return 200 "plain\\n"; } }\n' > /etc/nginx/conf.d/plain.conf
    systemctl reload nginx
    export METASLOT_CONF=/etc/metaslot/metaslot.toml
    printf '[[token]]\npath = "/var/lib/metaslot/proxy/token.db"\ngroup = "www-data"\nkdf = "weak-for-tests"\n' > $METASLOT_CONF
    (umask 077; printf 7482910365 > /run/proxy.pin)
    metaslot token init --label proxy --pin-source /run/proxy.pin --so-pin-source /run/proxy.pin
    metaslot key generate --label proxy --type rsa:2048 --pin-source /run/proxy.pin
    metaslot cert selfsign proxy --dns localhost --store --pin-source /run/proxy.pin --out /run/proxy.pem
    not grep -w tls /proc/sys/net/ipv4/tcp_available_ulp
    metaslot ksslcfg create -f pkcs11 -T proxy -C proxy -p /run/proxy.pin -x 8080 --server nginx localhost 4433
    is active systemctl is-active metaslot-kssl@localhost-4433
    is enabled systemctl is-enabled metaslot-kssl@localhost-4433
    # Its token may be one of the daemon's.
    has metaslotd.service systemctl show --property=After metaslot-kssl@localhost-4433
    is 0 records
    is plain curl --silent --show-error --max-time 60 --cacert /run/proxy.pem https://localhost:4433/
    test "$(records)" -ge 1
    has ' 2\.0 ' systemd-analyze security metaslot-kssl@localhost-4433
    has '^localhost-4433 +4433 +8080 +nginx +running' metaslot ksslcfg list
    metaslot ksslcfg delete localhost 4433
    not systemctl is-active metaslot-kssl@localhost-4433
    not test -e $unit/metaslot-kssl@localhost-4433.service
}
taken_out() {
    dpkg --remove metaslot
    not systemctl is-active metaslotd
    not systemctl is-active metaslotd.socket
    not pgrep -x metaslotd
    test -e /var/lib/metaslotd/web/token.db
}

echo 127.0.0.1 localhost > /etc/hosts
# What a system starts that serves; the target of this start waits for this script.
systemctl start multi-user.target
if [ ! -e /srv/again ]; then
    check "the package brings units that are not started, and the daemon's user" the_package
    check "the lines of the page make nginx sign by its unit" the_page
    check "the PIN is a credential that the TPM has sealed" sealed_by_the_tpm
    slow
    touch /srv/again
    sync
    systemctl reboot --force --force
    exit
fi
check "when the machine starts, the server waits for its key" started_again
check "the walls of the daemon stand, and systemd-analyze says 0.6 of its unit" the_walls
check "another service of the same user has no key, until it is given one" another_service
check "the daemon leaves no core dump, not even to a handler" no_core_dump
check "a client starts the daemon by its socket" by_the_socket
check "by the socket a slow restart, a kill and an upgrade fail no handshake" restarted
check "a wrong PIN and a wrong configuration are not tried again" a_wrong_start
check "three days later all is served" later
check "a month earlier all is served" earlier
check "and when the time is right again" the_time_again
check "p11-kit's client signs by vsock, as what passes its bytes on" by_vsock
check "our library signs by vsock, and no more when the forwarder may not" by_vsock_with_our_library
check "the unit metaslotd-connect@ signs by TLS" by_tls
check "a proxy's records are the kernel's" kernel_tls
check "the daemon ends with its package, and the token stays" taken_out
systemctl poweroff --force --force
