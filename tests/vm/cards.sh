# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh disable=SC2034
#
# The network cards of guests.  Sourced.
#
#    10.0, host A -- 11.0, shim's host port    uplink, 12.0 -- 13.0, host B
#
# are PCI addresses; a hub inside of the emulator is between each two.

HUGE_PAGES=192                  # Of 2 MiB.

# card ADDRESS HUB MODEL
card() {
    echo "-netdev hubport,id=n$1,hubid=$2"
    echo "-device $3,netdev=n$1,addr=$1.0,mac=02:00:00:00:00:$1,romfile="
}

# cards KIND: the emulator's options.
cards() {
    card 10 1 virtio-net-pci
    card 13 2 virtio-net-pci
    case $1 in
    virtio)
        card 11 1 virtio-net-pci,disable-legacy=on,iommu_platform=on
        card 12 2 virtio-net-pci,disable-legacy=on,iommu_platform=on ;;
    *)
        card 11 1 "$1"
        card 12 2 "$1" ;;
    esac
}
