package render

import (
	"os"
)

func signalName(sig os.Signal) string { return sig.String() }
