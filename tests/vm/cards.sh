# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh disable=SC2034,SC2154
#
# The network cards of guests.  Sourced.
#
#    10.0, host A -- 11.0, shim's host port    uplink, 12.0 -- 13.0, host B
#
# are PCI addresses.  Each pair of cards is connected by a hub inside the
# emulator, or, where cards have several queues, by a bridge in the test's
# namespace $ns.

HUGE_PAGES=320                  # Of 2 MiB.
QUEUES=4                        # Of a card that has several.
FOR_IOMMU=disable-legacy=on,iommu_platform=on

# on_hub ADDRESS HUB MODEL: prints the emulator's options for a card.
on_hub() {
    echo "-netdev hubport,id=n$1,hubid=$2"
    device "$1" "$3"
}

# on_tap ADDRESS QUEUES MODEL: the same for the interface tapADDRESS.
on_tap() {
    echo "-netdev tap,id=n$1,ifname=tap$1,script=no,downscript=no,queues=$2"
    device "$1" "$3"
}

device() {
    echo "-device $2,netdev=n$1,addr=$1.0,mac=02:00:00:00:00:$1,romfile="
}

# bridge NAME CARD... [--queues CARD...]: creates a bridge with an interface
# for each card.
bridge() {
    name=$1 queues=
    shift
    ip -n "$ns" link add name "$name" type bridge &&
        ip -n "$ns" link set dev "$name" up || return 1
    for card; do
        [ "$card" != --queues ] || { queues=multi_queue; continue; }
        ip -n "$ns" tuntap add "tap$card" mode tap vnet_hdr $queues &&
            ip -n "$ns" link set "tap$card" mtu 9000 master "$name" up ||
            return 1
    done
}

# wire KIND: creates what the cards need outside of the emulator.
wire() {
    [ "$1" != queues ] || { bridge bridge-a 10 --queues 11 &&
                            bridge bridge-b 13 --queues 12; }
}

# cards KIND: prints the emulator's options.
cards() {
    case $1 in
    actuator|identity|lab|switch) return ;;
    queues)
        several=mq=on,rss=on,vectors=$((2 * QUEUES + 2)),rx_queue_size=1024
        on_tap 10 1 virtio-net-pci
        on_tap 11 $QUEUES "virtio-net-pci,$FOR_IOMMU,$several"
        on_tap 12 $QUEUES "virtio-net-pci,$FOR_IOMMU,$several"
        on_tap 13 1 virtio-net-pci
        return ;;
    virtio|vhost|unit) model=virtio-net-pci,$FOR_IOMMU ;;
    *) model=$1 ;;
    esac
    if [ "$1" != vhost ]; then
        on_hub 10 1 virtio-net-pci
        on_hub 11 1 "$model"
    fi
    on_hub 12 2 "$model"
    on_hub 13 2 virtio-net-pci
}
