package shard

import (
	"math/bits"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"stockade/biz/sale"
)

// The hash-slot space of a Redis Cluster, cut into one range for each slot a SKU can have.
const (
	hashSlots = 16384
	rangeSize = hashSlots / sale.MaxSlots
	// A tag lies in the first part of its range, so that the ranges' starts decide where a master's border cuts, not
	// the luck of the salt: 32 slots over 3 masters are 11, 11 and 10.
	tagSpread = rangeSize / 8
	rangeBits = 5 // 2^rangeBits = sale.MaxSlots
)

// crcTable is CRC16/XMODEM (polynomial 0x1021), the checksum of Redis Cluster, byte by byte.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

func crc16(crc uint16, data []byte) uint16 {
	for _, b := range data {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b]
	}
	return crc
}

// Tag is the hash tag that all keys of a share have in common: <sku>.<slot>.<salt>, or <sku>.r.<salt> for the reserve.
// The salt is the smallest number, in base 36, that puts the tag where homeRange wants it. Tag is a pure function, so
// every node finds a share without asking anybody. It takes about 4 µs.
func Tag(sku string, share sale.Share) string {
	first := homeRange(sku, share) * rangeSize
	if share == sale.Reserve {
		first = hashSlots - tagSpread
	}
	slot := "r"
	if share != sale.Reserve {
		slot = strconv.Itoa(int(share))
	}
	tag := append(make([]byte, 0, len(sku)+10), sku...)
	tag = append(append(append(tag, '.'), slot...), '.')
	stem, crc := len(tag), crc16(0, tag)
	for salt := uint64(0); ; salt++ {
		tag = strconv.AppendUint(tag[:stem], salt, 36)
		at := int(crc16(crc, tag[stem:]) % hashSlots)
		if at >= first && at < first+tagSpread {
			return string(tag)
		}
	}
}

// homeRange is the range of a share, 0 to sale.MaxSlots−1. Reversing the bits of the slot number spreads the slots of
// a SKU with few of them over the whole space, and shifting by a hash of the SKU spreads the SKUs. The reserve goes to
// the end of the last range: with 32 slots, the last of three masters is the one with 10 of them.
func homeRange(sku string, share sale.Share) int {
	if share == sale.Reserve {
		return sale.MaxSlots - 1
	}
	spread := bits.Reverse8(uint8(share)) >> (8 - rangeBits)
	return int((uint64(spread) + xxhash.Sum64String(sku)) % sale.MaxSlots)
}
