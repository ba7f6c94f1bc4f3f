package link

import "strconv"

// An Opcode is a kind of request of ZooKeeper's client protocol.
type Opcode int32

// The requests clients send, by the numbers of ZooDefs.OpCode.
const (
	CreateSession        Opcode = -10 // the first request of every connection, also of one that resumes a session
	CloseSession         Opcode = -11
	Create               Opcode = 1
	Delete               Opcode = 2
	Exists               Opcode = 3
	GetData              Opcode = 4
	SetData              Opcode = 5
	GetACL               Opcode = 6
	SetACL               Opcode = 7
	GetChildren          Opcode = 8
	Sync                 Opcode = 9
	Ping                 Opcode = 11
	GetChildren2         Opcode = 12
	Check                Opcode = 13
	Multi                Opcode = 14
	Create2              Opcode = 15
	Reconfig             Opcode = 16
	CheckWatches         Opcode = 17
	RemoveWatches        Opcode = 18
	CreateContainer      Opcode = 19
	CreateTTL            Opcode = 21
	MultiRead            Opcode = 22
	Auth                 Opcode = 100
	SetWatches           Opcode = 101
	SASL                 Opcode = 102
	GetEphemerals        Opcode = 103
	GetAllChildrenNumber Opcode = 104
	SetWatches2          Opcode = 105
	AddWatch             Opcode = 106
	WhoAmI               Opcode = 107
)

var opcodeNames = map[Opcode]string{
	CreateSession:        "createSession",
	CloseSession:         "closeSession",
	Create:               "create",
	Delete:               "delete",
	Exists:               "exists",
	GetData:              "getData",
	SetData:              "setData",
	GetACL:               "getACL",
	SetACL:               "setACL",
	GetChildren:          "getChildren",
	Sync:                 "sync",
	Ping:                 "ping",
	GetChildren2:         "getChildren2",
	Check:                "check",
	Multi:                "multi",
	Create2:              "create2",
	Reconfig:             "reconfig",
	CheckWatches:         "checkWatches",
	RemoveWatches:        "removeWatches",
	CreateContainer:      "createContainer",
	CreateTTL:            "createTTL",
	MultiRead:            "multiRead",
	Auth:                 "auth",
	SetWatches:           "setWatches",
	SASL:                 "sasl",
	GetEphemerals:        "getEphemerals",
	GetAllChildrenNumber: "getAllChildrenNumber",
	SetWatches2:          "setWatches2",
	AddWatch:             "addWatch",
	WhoAmI:               "whoAmI",
}

// String is the name ZooKeeper has for the request, or the number if it has none.
func (o Opcode) String() string {
	if name, ok := opcodeNames[o]; ok {
		return name
	}
	return strconv.Itoa(int(o))
}
