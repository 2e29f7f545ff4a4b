package router

import (
	"net"
	"net/netip"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/auth"
)

// maxHops is how many entries of X-Forwarded-For are looked at, from the right.
const maxHops = 32

// clients finds out who is at the other end of a request.
type clients struct {
	trusted []netip.Prefix // gateways whose X-Forwarded-For is believed
	exempt  []netip.Prefix // never a bucket's key
	buyers  *auth.Buyers   // knows the peers that speak for many buyers; nil: none does
}

// address returns the client's address: the peer, or, when the peer is a trusted gateway, the rightmost address of
// X-Forwarded-For that is not one. It is not valid when trusted gateways name nobody else.
func (k *clients) address(c *app.RequestContext) netip.Addr {
	peer := peerAddress(c.RemoteAddr())
	if !within(k.trusted, peer) {
		return peer
	}
	lines := c.Request.Header.PeekAll("X-Forwarded-For")
	for i, hops := len(lines)-1, maxHops; i >= 0; i-- {
		for rest := string(lines[i]); rest != ""; hops-- {
			if hops == 0 {
				return netip.Addr{}
			}
			var entry string
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, entry = rest[:comma], rest[comma+1:]
			} else {
				rest, entry = "", rest
			}
			// Whatever stands left of an entry that is no address was not written by a gateway of ours.
			addr, ok := hopAddress(strings.TrimSpace(entry))
			if !ok {
				return netip.Addr{}
			}
			if !within(k.trusted, addr) {
				return addr
			}
		}
	}
	return netip.Addr{}
}

// bucketKey returns the address whose bucket pays for the request, if there is one: trusted gateways and exempt
// addresses never do, and neither does a peer that may name buyers, since it sends the requests of all of them.
func (k *clients) bucketKey(c *app.RequestContext) (netip.Addr, bool) {
	addr := k.address(c)
	if !addr.IsValid() || within(k.exempt, addr) {
		return addr, false
	}
	return addr, addr != peerAddress(c.RemoteAddr()) || !k.namesBuyers(addr)
}

func (k *clients) namesBuyers(peer netip.Addr) bool {
	return k.buyers != nil && k.buyers.IsGateway(peer)
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

func peerAddress(a net.Addr) netip.Addr {
	if tcp, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// hopAddress reads an entry of X-Forwarded-For, with or without a port.
func hopAddress(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}
