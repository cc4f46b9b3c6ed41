package cmdexec

const bytesAvailable = 0x4004667f // FIONREAD of <sys/filio.h>
