package role

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// cutConnections breaks this process's TCP connections, but not the one to
// keep, as a network does that is gone: neither side gets to say goodbye by its
// own protocol. It needs no help of the client library and returns how many
// there were.
func cutConnections(keep string) (int, error) {
	fds, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0, fmt.Errorf("cut the connections: %w", err)
	}
	n := 0
	var errs []error
	for _, f := range fds {
		fd, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		peer, err := syscall.Getpeername(fd)
		if err != nil || address(peer) == "" || address(peer) == keep {
			continue // no socket, or none of TCP, or the gate's
		}
		if err := syscall.Shutdown(fd, syscall.SHUT_RDWR); err != nil && !errors.Is(err, syscall.ENOTCONN) {
			errs = append(errs, fmt.Errorf("cut the connection to %s: %w", address(peer), err))
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}

// address is host:port, or empty for what is not of the Internet.
func address(s syscall.Sockaddr) string {
	switch a := s.(type) {
	case *syscall.SockaddrInet4:
		return net.JoinHostPort(net.IP(a.Addr[:]).String(), strconv.Itoa(a.Port))
	case *syscall.SockaddrInet6:
		return net.JoinHostPort(net.IP(a.Addr[:]).String(), strconv.Itoa(a.Port))
	}
	return ""
}
