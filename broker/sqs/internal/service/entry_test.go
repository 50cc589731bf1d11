package service

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

func headers(n int) (all []codec.Header) {
	for i := range n {
		all = append(all, codec.Header{Name: fmt.Sprint("h", i), Value: fmt.Sprint(i)})
	}
	return all
}

// TestPack checks that every packet survives Pack and unpack, with no more attributes than SQS
// allows and none that it refuses.
func TestPack(t *testing.T) {
	awkward := []codec.Header{
		{Name: "", Value: "no name"}, {Name: "a..b", Value: "dots"}, {Name: ".a", Value: "dot"}, {Name: "AWS.x", Value: "theirs"}, {Name: "amazon.x", Value: "theirs"},
		{Name: "blank name", Value: "x"}, {Name: "ümlaut", Value: "x"}, {Name: "empty", Value: ""}, {Name: "control", Value: "\x01\x1f"},
		{Name: "noncharacters", Value: "\uFFFE\uFFFF"}, {Name: "content-type", Value: "mine"}, {Name: "postrider-body", Value: "base64"},
		{Name: "Postrider-Headers", Value: "{}"}, {Name: "postrider-key", Value: "mine"}, {Name: strings.Repeat("n", 257), Value: "long"},
	}
	for name, p := range map[string]codec.Packet{
		"text":           {Body: []byte("täxt\r\n\t"), ContentType: "text/plain", Headers: headers(9)},
		"eleven":         {Body: []byte("{}"), ContentType: "application/json", Headers: headers(10)},
		"binary, eleven": {Body: []byte{0, 255}, ContentType: "x/y", Headers: headers(9)},
		"empty":          {ContentType: "x/y", Headers: headers(40)},
		"awkward":        {Body: []byte("\uFFFF"), Headers: awkward},
		"awkward too":    {Body: []byte("\x0b"), Headers: append(headers(10), awkward...)},
		"nothing":        {},
	} {
		t.Run(name, func(t *testing.T) {
			p.Name, p.Key = "orders", "k"
			for _, format := range []codec.Format{codec.CloudEvents, codec.Raw} {
				e, err := Pack(&p, format)
				if err != nil {
					t.Fatal(err)
				}
				if len(e.attributes) > mostAttributes || !isText(e.body) || e.body == "" {
					t.Errorf("%d attributes, body %q", len(e.attributes), e.body)
				}
				size := len(e.body)
				got := types.Message{Body: &e.body, MessageId: aws.String("id"), MessageAttributes: make(map[string]types.MessageAttributeValue)}
				for _, a := range e.attributes {
					size += len(a.Name) + len(a.Value) + len("String")
					if !isText(a.Value) || a.Value == "" || !attributePattern.MatchString(a.Name) {
						t.Errorf("attribute %q is %q", a.Name, a.Value)
					}
					got.MessageAttributes[a.Name] = types.MessageAttributeValue{StringValue: &a.Value}
				}
				if size != e.Size {
					t.Errorf("size %d, want %d", e.Size, size)
				}
				back, err := Received("orders", &got)
				if err != nil {
					t.Fatal(err)
				}
				if string(back.Body) != string(p.Body) || back.ContentType != p.ContentType || back.Place != "id" || (back.Key == "k") != (format == codec.Raw) {
					t.Errorf("got %+v", back)
				}
				if want, have := byName(p.Headers), byName(back.Headers); !maps.Equal(want, have) {
					t.Errorf("headers are %q, want %q", have, want)
				}
			}
		})
	}
}

func byName(all []codec.Header) map[string]string {
	m := make(map[string]string)
	for _, h := range all {
		m[h.Name] = h.Value
	}
	return m
}

func TestTooLarge(t *testing.T) {
	for size, ok := range map[int]bool{MaxMessage - 16: true, MaxMessage - 15: false} { // with an attribute of 16 bytes
		p := codec.Packet{Name: "orders", Body: []byte(strings.Repeat("x", size)), Headers: []codec.Header{{Name: "a2345", Value: "v2345"}}}
		if _, err := Pack(&p, codec.CloudEvents); (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestGroups checks that each key has its own group, and that a message without a key shares no
// group.
func TestGroups(t *testing.T) {
	seen := make(map[string]string)
	for i, key := range []string{
		"order/4711", "with blank", "ümlaut", strings.Repeat("k", 128), strings.Repeat("k", 129), strings.Repeat("k", 130), digest("order/4711"), "", "",
	} {
		p := codec.Packet{Name: "orders.fifo", Key: key, ID: fmt.Sprint("id ", i), Body: []byte("x")}
		e, err := Pack(&p, codec.CloudEvents)
		if err != nil {
			t.Fatal(err)
		}
		if !isIdentifier(e.group) || !isIdentifier(e.dedup) || seen[e.group] != "" {
			t.Errorf("key %q is group %q, ID %q", key, e.group, e.dedup)
		}
		seen[e.group] = key + "!"
		back, err := Received(p.Name, &types.Message{Body: &e.body, Attributes: map[string]string{"MessageGroupId": e.group}})
		if own := i == 0 || i == 3; err != nil || (back.Key == key) != (own || key == "") {
			t.Errorf("key %q comes back as %q, %v", key, back.Key, err)
		}
	}
	p := codec.Packet{Name: "orders", Key: "k", ID: "i", Body: []byte("x")}
	if e, _ := Pack(&p, codec.CloudEvents); e.group != "" || e.dedup != "" {
		t.Errorf("a standard queue gets %+v", e)
	}
}

func TestReceivedBroken(t *testing.T) {
	for attribute, value := range map[string]string{attributeBody: bodyBase64, attributeHeaders: "{"} {
		m := types.Message{Body: aws.String("!"), MessageAttributes: map[string]types.MessageAttributeValue{attribute: {StringValue: &value}}}
		if p, err := Received("q", &m); err == nil || string(p.Body) != "!" {
			t.Errorf("%s: got %+v, %v", attribute, p, err)
		}
	}
}

func TestClassify(t *testing.T) {
	for code, want := range map[string]string{
		"AWS.SimpleQueueService.NonExistentQueue":    "unavailable name",
		"com.amazonaws.sqs#QueueDoesNotExist":        "unavailable name",
		"NotFound":                                   "unavailable name",
		"NotFoundException":                          "unavailable name",
		"AccessDenied":                               "unavailable name",
		"AccessDeniedException":                      "unavailable name",
		"AuthorizationError":                         "unavailable name",
		"KMS.DisabledException":                      "unavailable name",
		"KmsDisabled":                                "unavailable name",
		"InvalidMessageContents":                     "permanent message",
		"AWS.SimpleQueueService.BatchRequestTooLong": "permanent message",
		"InvalidParameterValue":                      "permanent message",
		"ExpiredToken":                               "unavailable destination",
		"InvalidClientTokenId":                       "unavailable destination",
		"ThrottlingException":                        "unavailable destination",
		"RequestThrottled":                           "unavailable destination",
		"SomethingNew":                               "unknown unknown",
	} {
		err := Classify(&Queues{}, "orders", &smithy.GenericAPIError{Code: code, Fault: smithy.FaultClient}, true)
		if got := fmt.Sprint(postrider.ClassOf(err), " ", postrider.ScopeOf(err)); got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
	for _, c := range []struct {
		err  error
		sent bool
		want postrider.Class
	}{
		{errors.New("refused"), false, postrider.ClassUnavailable},
		{errors.New("reset"), true, postrider.ClassUnknown},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, true, postrider.ClassUnknown},
		{&net.OpError{Op: "read", Err: net.ErrClosed}, true, postrider.ClassUnknown},
		{net.ErrClosed, true, postrider.ClassUnavailable},
		{&net.OpError{Op: "write", Err: errors.New("reset")}, true, postrider.ClassUnavailable},
		{&smithy.GenericAPIError{Code: "InternalError", Fault: smithy.FaultServer}, true, postrider.ClassUnavailable},
	} {
		if got := postrider.ClassOf(Classify(&Queues{}, "orders", c.err, c.sent)); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
	if err := Classify(&Queues{}, "orders.fifo", &types.QueueDoesNotExist{}, true); !strings.Contains(err.Error(), "aws sqs create-queue --queue-name orders.fifo --attributes FifoQueue=true") {
		t.Error(err)
	}
}
