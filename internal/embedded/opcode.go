package embedded

// An opcode says what a request wants; the numbers are those of the wire protocol.
type opcode int32

const (
	opCreate               opcode = 1
	opDelete               opcode = 2
	opExists               opcode = 3
	opGetData              opcode = 4
	opSetData              opcode = 5
	opGetACL               opcode = 6
	opSetACL               opcode = 7
	opGetChildren          opcode = 8
	opSync                 opcode = 9
	opPing                 opcode = 11
	opGetChildren2         opcode = 12
	opCheck                opcode = 13 // in a multi only
	opMulti                opcode = 14
	opCreate2              opcode = 15
	opReconfig             opcode = 16
	opCheckWatches         opcode = 17
	opRemoveWatches        opcode = 18
	opCreateContainer      opcode = 19
	opDeleteContainer      opcode = 20
	opCreateTTL            opcode = 21
	opMultiRead            opcode = 22
	opAuth                 opcode = 100
	opSetWatches           opcode = 101
	opGetEphemerals        opcode = 103
	opGetAllChildrenNumber opcode = 104
	opSetWatches2          opcode = 105
	opAddWatch             opcode = 106
	opWhoAmI               opcode = 107
	opCloseSession         opcode = -11
	opError                opcode = -1
)

// Requests with numbers of their own instead of the client's.
const (
	xidEvent int32 = -1
	xidPing  int32 = -2
)

// A handler reads the rest of a request and writes the reply, save for its header. With an error the reply is a header
// alone. The ensemble is locked.
type handler func(c *connection, in *decoder, out *encoder) error

// served is every operation this ensemble offers, with the short name that `cons` shows. Ping, auth and close are the
// connection's own affair.
var served = map[opcode]struct {
	name   string
	handle handler
}{
	opCreate:               {"CREA", creating(opCreate, Mode.kind)},
	opCreate2:              {"CREA", creating(opCreate2, Mode.kind)},
	opCreateContainer:      {"CREA", creating(opCreateContainer, always(container))},
	opCreateTTL:            {"CREA", creating(opCreateTTL, always(expiring))},
	opDelete:               {"DELE", alone(readDelete)},
	opDeleteContainer:      {"DELE", alone(readDeleteContainer)},
	opSetData:              {"SETD", alone(readSetData)},
	opSetACL:               {"SETA", alone(readSetACL)},
	opMulti:                {"MULT", handleMulti},
	opMultiRead:            {"MLTR", handleMultiRead},
	opReconfig:             {"RECO", alone(readReconfig)},
	opExists:               {"EXIS", handleExists},
	opGetData:              {"GETD", reading(false, answerData)},
	opGetACL:               {"GETA", handleGetACL},
	opGetChildren:          {"GETC", reading(true, answerNames)},
	opGetChildren2:         {"GETC", reading(true, answerNamesAndStat)},
	opGetAllChildrenNumber: {"GETACN", handleGetAllChildrenNumber},
	opGetEphemerals:        {"GETE", handleGetEphemerals},
	opSync:                 {"SYNC", handleSync},
	opWhoAmI:               {"HOMI", handleWhoAmI},
	opSetWatches:           {"SETW", settingWatches(false)},
	opSetWatches2:          {"STW2", settingWatches(true)},
	opAddWatch:             {"ADDW", handleAddWatch},
	opCheckWatches:         {"CHKW", handleCheckWatches},
	opRemoveWatches:        {"REMW", handleRemoveWatches},
}
