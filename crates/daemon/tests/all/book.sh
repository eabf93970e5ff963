# SPDX-License-Identifier: Apache-2.0
# A system in which the package is installed and nothing runs. BUILT has the module, the command and the provider, DAEMON is the daemon.
set -e
mount -t tmpfs metaslot-book /mnt
for directory in etc usr var run root; do
    mkdir -p "/mnt/$directory/new" "/mnt/$directory/work"
    mount -t overlay metaslot-book -o "lowerdir=/$directory,upperdir=/mnt/$directory/new,workdir=/mnt/$directory/work" "/$directory"
done
export HOME=/root
umask 022
ip link set lo up
library=/usr/lib/x86_64-linux-gnu
place() { # FILE PLACE: what is built is long, and is not copied.
    mkdir -p "${2%/*}"
    touch "$2"
    mount --bind "$1" "$2"
}
place "$BUILT/metaslot" /usr/bin/metaslot
place "$DAEMON" /usr/sbin/metaslotd
place "$BUILT/libmetaslot.so" $library/pkcs11/libmetaslot.so
place "$BUILT/libmetaslot_ossl.so" $library/ossl-modules/metaslot.so
getent group metaslot > /dev/null || groupadd --system metaslot
getent passwd metaslotd > /dev/null || useradd --system --user-group --groups metaslot --home-dir /var/lib/metaslotd metaslotd
install -d -m 1777 /run/metaslot
install -d -m 700 -o metaslotd -g metaslotd /var/lib/metaslotd
mkdir -p /mnt/srv
mount --bind /mnt/srv /srv
trap 'test ! -s /run/nginx.pid || kill "$(cat /run/nginx.pid)"; kill $(jobs -p)' EXIT

# The daemon with what its unit gives it, and nginx with the environment of its drop-in.
systemctl() {
    case "$*" in
    daemon-reload) ;;
    "enable --now metaslotd")
        install -d -o metaslotd -g metaslotd /run/metaslotd
        install -d -m 700 -o metaslotd -g metaslotd /run/credentials /run/credentials/metaslotd.service
        sed -n 's/^LoadCredentialEncrypted=\(.*\):\(.*\)/\1 \2/p' /etc/systemd/system/metaslotd.service.d/*.conf |
            while read -r name file; do
                systemd-creds decrypt --name="$name" "$file" "/run/credentials/metaslotd.service/$name"
                chown metaslotd: "/run/credentials/metaslotd.service/$name"
            done
        CREDENTIALS_DIRECTORY=/run/credentials/metaslotd.service \
            setpriv --reuid metaslotd --regid metaslotd --init-groups metaslotd > /run/said 2>&1 &
        daemon=$!
        until test -S /run/metaslotd/socket; do kill -0 $daemon || { cat /run/said; return 1; }; sleep 0.02; done
        ;;
    "reload metaslotd") kill -HUP $daemon ;;
    "restart nginx")
        env $(sed -n 's/^Environment=//p' /etc/systemd/system/nginx.service.d/*.conf) nginx
        ;;
    *) echo "systemctl $*: not here" >&2; return 1 ;;
    esac
}

# A container: namespaces, another root, and a user without a name. Of an image it has what is installed here.
podman() {
    local root=/mnt/container user group network mounts=()
    shift
    while test "${1#-}" != "$1"; do
        case "$1" in
        --user) user=$2; shift ;;
        --group-add) group=$2; shift ;;
        --network) test "$2" = none; network=--net; shift ;;
        -v) mounts+=("$2"); shift ;;
        --rm) ;;
        *) echo "podman $1: not here" >&2; return 1 ;;
        esac
        shift
    done
    shift
    mkdir -p $root
    MOUNTS=${mounts[*]} unshare --mount --pid --ipc --uts $network --fork bash -ec '
        root=$1 user=$2 group=$3
        shift 3
        mount -t tmpfs container "$root"
        mkdir "$root"/{usr,proc,dev,etc,run,tmp}
        chmod 1777 "$root/tmp"
        mount --rbind /usr "$root/usr"
        mount -t proc proc "$root/proc"
        ln -s usr/bin usr/lib usr/lib64 usr/sbin "$root"
        cp /etc/ld.so.cache /etc/os-release "$root/etc"
        mknod -m 666 "$root/dev/null" c 1 3
        mknod -m 666 "$root/dev/urandom" c 1 9
        for one in $MOUNTS; do
            IFS=: read -r from to options <<< "$one"
            mkdir -p "$root/$to"
            mount --bind "$from" "$root/$to"
            test -z "$options" || mount -o "remount,bind,$options" "$root/$to"
        done
        exec env -i PATH=/usr/bin:/usr/sbin chroot --userspec="$user:$user" --groups="$group" "$root" "$@"
    ' container "$root" "$user" "$group" "$@"
}
