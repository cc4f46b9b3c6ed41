package httpexec

// The exit codes of curl for what can go wrong.
const (
	exitScheme     = 1
	exitURL        = 3
	exitProxyName  = 5
	exitDNS        = 6
	exitConnect    = 7
	exitNotHTTP    = 8
	exitHTTP2      = 16
	exitCut        = 18
	exitStatus     = 22
	exitWrite      = 23
	exitRead       = 26
	exitTimeout    = 28
	exitTLS        = 35
	exitRedirects  = 47
	exitResolve    = 49
	exitEmpty      = 52
	exitSend       = 55
	exitReceive    = 56
	exitClientCert = 58
	exitUntrusted  = 60
	exitEncoding   = 61
	exitCACert     = 77
	exitStream     = 92
	exitProxy      = 97
)
