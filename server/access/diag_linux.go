package access

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// uidOfClient returns the user whose socket is at the other end of a TCP connection within this machine.
func uidOfClient(c *net.TCPConn) (uid int, err error) {
	local, remote := addressOf(c.LocalAddr()), addressOf(c.RemoteAddr())
	client, err := findSocket(remote, local)
	if err != nil {
		return 0, err
	}
	// Our own end is found with the inode of our descriptor: so the client, too, is of this network namespace, and no
	// other connection has taken the place of ours meanwhile.
	own, err := findSocket(local, remote)
	if err != nil {
		return 0, err
	}
	inode, err := inodeOf(c)
	switch {
	case err != nil:
		return 0, err
	case uint64(own.Inode) != inode:
		return 0, errors.New("the connection is of another network namespace, or has ended")
	case !client.hasOwner():
		return 0, errors.New("the client has closed the connection")
	}
	return int(client.UID), nil
}

// CheckLoopback returns an error where this system does not tell who calls over loopback: it looks for the socket that
// listens. Then nobody may call without a token.
func CheckLoopback(listens net.Addr) error {
	address := addressOf(listens)
	unspecified := netip.IPv4Unspecified()
	if address.Addr().Is6() {
		unspecified = netip.IPv6Unspecified()
	}
	_, err := findSocket(address, netip.AddrPortFrom(unspecified, 0))
	if err == nil && isUnmapped(os.Geteuid()) {
		err = errors.New("in this user namespace other users of the machine look like the user of the server")
	}
	return err
}

// isUnmapped reports whether a uid may be any user of the machine: in a user namespace the kernel gives those that it
// does not map one uid, that of nobody.
func isUnmapped(uid int) bool { return uid == unmapped() }

// unmapped is that uid; -1 where all users are mapped. It is asked for at each request without a token.
var unmapped = sync.OnceValue(func() int {
	users, err := os.ReadFile("/proc/self/uid_map")
	if err == nil && slices.Equal(strings.Fields(string(users)), []string{"0", "0", "4294967295"}) {
		return -1
	}
	if text, err := os.ReadFile("/proc/sys/kernel/overflowuid"); err == nil {
		if uid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return uid
		}
	}
	return 65534
})

func addressOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	address := tcp.AddrPort()
	return netip.AddrPortFrom(address.Addr().Unmap().WithZone(""), address.Port())
}

func inodeOf(c *net.TCPConn) (inode uint64, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var stat unix.Stat_t
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Fstat(int(fd), &stat) }); err != nil {
		return 0, err
	}
	return stat.Ino, failed
}

// The messages of sock_diag(7) for one socket.
type (
	socketID struct {
		SourcePort, DestinationPort [2]byte // big endian
		Source, Destination         [16]byte
		Interface                   uint32
		Cookie                      [2]uint32
	}
	socketRequest struct {
		Header                          unix.NlMsghdr
		Family, Protocol, Extensions, _ uint8
		States                          uint32
		ID                              socketID
	}
	socketReply struct {
		Header                              unix.NlMsghdr
		Family, State, Timer, Retransmitted uint8
		ID                                  socketID
		Expires, ReadQueue, WriteQueue      uint32
		UID, Inode                          uint32
	}
)

// hasOwner reports whether a process has a connected socket open. Of one that nobody has open, the kernel says uid 0.
func (s *socketReply) hasOwner() bool {
	switch s.State {
	case unix.BPF_TCP_ESTABLISHED, unix.BPF_TCP_FIN_WAIT1, unix.BPF_TCP_FIN_WAIT2: // it may have closed its half
		return s.Inode != 0
	}
	return false
}

// findSocket asks the kernel for the TCP socket with two addresses, the first of which is its own. The reply is there
// as soon as the question was sent.
func findSocket(own, other netip.AddrPort) (s socketReply, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return s, fmt.Errorf("open a socket of sock_diag: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	q := socketRequest{Family: unix.AF_INET, Protocol: unix.IPPROTO_TCP, States: ^uint32(0)}
	if own.Addr().Is6() {
		q.Family = unix.AF_INET6
	}
	q.Header = unix.NlMsghdr{
		Len: uint32(binary.Size(q)), Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST,
	}
	copy(q.ID.Source[:], own.Addr().AsSlice())
	copy(q.ID.Destination[:], other.Addr().AsSlice())
	binary.BigEndian.PutUint16(q.ID.SourcePort[:], own.Port())
	binary.BigEndian.PutUint16(q.ID.DestinationPort[:], other.Port())
	q.ID.Cookie = [2]uint32{^uint32(0), ^uint32(0)} // any
	var message bytes.Buffer
	if err := binary.Write(&message, binary.NativeEndian, q); err != nil {
		return s, err
	}
	if err := unix.Sendto(fd, message.Bytes(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return s, fmt.Errorf("ask sock_diag: %w", err)
	}
	reply := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, reply, unix.MSG_DONTWAIT)
	if err != nil {
		return s, fmt.Errorf("read the reply of sock_diag: %w", err)
	}
	if _, err := binary.Decode(reply[:max(n, binary.Size(s))], binary.NativeEndian, &s); err != nil {
		return s, err
	}
	if s.Header.Type == unix.SOCK_DIAG_BY_FAMILY {
		return s, nil
	}
	code := unix.Errno(-int32(binary.NativeEndian.Uint32(reply[unix.SizeofNlMsghdr:])))
	if errors.Is(code, unix.ENOENT) {
		return s, errors.New("sock_diag shows no such socket")
	}
	return s, fmt.Errorf("sock_diag: %w", code)
}
