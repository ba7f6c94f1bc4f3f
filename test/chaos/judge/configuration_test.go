package judge

import (
	"testing"
)

func TestAConfigurationThatIsNotLinearizableIsTold(t *testing.T) {
	put := `
		10 1/1 invoked put k a
		20 1/1 returned ok put k a ->1/5`
	judgeAll(t, Configuration, []story{
		{name: "a read of what was put", seen: put + `
			30 2/1 invoked get k
			40 2/1 returned ok get k a ->1/5`},
		{name: "a read of nothing after a put", seen: put + `
			30 2/1 invoked get k
			40 2/1 returned ok get k`, want: "Illegal"},
		{name: "a local read of what was, on another sidecar's word", seen: put + `
			21 1/2 invoked put k b
			29 1/2 returned ok put k b ->2/6
			30 2/1 invoked look k
			40 2/1 returned ok look k a`},
		{name: "a local read of what is older than what the sidecar wrote", seen: put + `
			21 1/2 invoked put k b
			29 1/2 returned ok put k b ->2/6
			30 2/1 invoked look k
			40 2/1 returned ok look k a ->1/5`, want: "sidecar 1 showed client 2/1 revision 5 of k, and client 1/2 had seen 6"},
		{name: "the same after the sidecar was started anew", seen: put + `
			21 1/2 invoked put k b
			29 1/2 returned ok put k b ->2/6
			29.5 c killed sidecar/1
			30 2/1 invoked look k
			40 2/1 returned ok look k a ->1/5`},
		{name: "two writes that each were the first", seen: put + `
			30 2/1 invoked put k b
			40 2/1 returned ok put k b ->1/6`, want: "Illegal"},
		{name: "a put that demanded a version that was not there", seen: put + `
			30 2/1 invoked put k b if9
			40 2/1 returned ok put k b if9 ->2/6`, want: "Illegal"},
		{name: "a demand that is met, and one that is not", seen: put + `
			30 2/1 invoked put k b if1
			40 2/1 returned ok put k b if1 ->2/6
			50 2/2 invoked put k c if1
			60 2/2 returned refused PRECONDITION_FAILED
			70 2/3 invoked put k c if-1
			80 2/3 returned refused PRECONDITION_FAILED`},
		{name: "a demand that is refused though it is met", seen: put + `
			30 2/1 invoked put k b if1
			40 2/1 returned refused PRECONDITION_FAILED`, want: "Illegal"},
		{name: "a put that never got there", seen: put + `
			30 2/1 invoked put k b if1
			40 2/1 returned refused ENSEMBLE_UNREACHABLE`},
		{name: "a put without an answer, that is done late", seen: put + `
			30 2/1 invoked put k b
			40 2/1 returned unknown OUTCOME_UNKNOWN
			50 1/2 invoked get k
			60 1/2 returned ok get k a ->1/5
			70 1/3 invoked get k
			80 1/3 returned ok get k b ->2/9`},
		{
			name: "the same, when the logs tell that it was done before what was read first", seen: put + `
				30 2/1 invoked put k b
				40 2/1 returned unknown OUTCOME_UNKNOWN
				42 1/9 invoked put other x
				44 1/9 returned ok put other x ->1/12
				50 1/2 invoked get k
				60 1/2 returned ok get k a ->1/5
				70 1/3 invoked get k
				80 1/3 returned ok get k b ->2/9`,
			logged: `
				4 11 s1 make /config/k
				5 11 s1 put /config/k a 1
				9 35 s2 put /config/k b 2
				11 43 s1 make /config/other
				12 43 s1 put /config/other x 1`,
			want: "Illegal",
		},
		{
			name: "a put without an answer that the logs know nothing of", seen: put + `
				30 2/1 invoked put k b
				40 2/1 returned unknown OUTCOME_UNKNOWN
				50 1/2 invoked get k
				60 1/2 returned ok get k a ->1/5`,
			logged: `
				4 11 s1 make /config/k
				5 11 s1 put /config/k a 1`,
		},
		{
			name: "what is read of a put that the logs know nothing of", seen: put + `
				30 2/1 invoked put k b
				40 2/1 returned unknown OUTCOME_UNKNOWN
				50 1/2 invoked get k
				60 1/2 returned ok get k b ->2/6`,
			logged: `
				4 11 s1 make /config/k
				5 11 s1 put /config/k a 1`,
			want: "Illegal",
		},
		{name: "a caller that is killed in the middle of a deletion", seen: put + `
			30 2/1 invoked delete k
			35 c killed client/2
			50 1/2 invoked get k
			60 1/2 returned ok get k
			61 1/3 invoked put k b
			62 1/3 returned ok put k b ->1/9`},
		{name: "several keys at once", seen: put + `
			30 2/1 invoked put k b put l b
			40 2/1 returned ok put k b ->2/6 put l b ->1/6
			50 2/2 invoked put k c if1 put l c
			60 2/2 returned refused PRECONDITION_FAILED
			70 1/2 invoked get l
			80 1/2 returned ok get l b ->1/6`},
		{name: "half of several keys", seen: put + `
			30 2/1 invoked put k b put l b
			40 2/1 returned ok put k b ->2/6 put l b ->1/6
			70 1/2 invoked get l
			80 1/2 returned ok get l`, want: "Illegal"},
	})
}
