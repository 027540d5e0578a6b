package rpc

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// codes are the Connect codes by which clients that do not read details tell
// errors apart (proto/raftlease/v1/lease.proto).
var codes = map[pb.ErrorCode]connect.Code{
	pb.ErrorCode_ERROR_CODE_INVALID:         connect.CodeInvalidArgument,
	pb.ErrorCode_ERROR_CODE_HELD:            connect.CodeFailedPrecondition,
	pb.ErrorCode_ERROR_CODE_LOST:            connect.CodeAborted,
	pb.ErrorCode_ERROR_CODE_NOT_FOUND:       connect.CodeNotFound,
	pb.ErrorCode_ERROR_CODE_UNAVAILABLE:     connect.CodeUnavailable,
	pb.ErrorCode_ERROR_CODE_UNKNOWN_OUTCOME: connect.CodeUnknown,
	pb.ErrorCode_ERROR_CODE_CLOSED:          connect.CodeUnavailable,
}

// Error is what a handler returns for d, with a text for people.
func Error(d *pb.ErrorDetail, text string) error {
	code, ok := codes[d.GetCode()]
	if !ok {
		code = connect.CodeUnknown
	}
	e := connect.NewError(code, errors.New(text))
	if detail, err := connect.NewErrorDetail(d); err == nil {
		e.AddDetail(detail)
	}
	return e
}

// Detail returns the detail that err carries, nil for one that did not come from
// a handler of a node.
func Detail(err error) *pb.ErrorDetail {
	var e *connect.Error
	if !errors.As(err, &e) {
		return nil
	}
	for _, detail := range e.Details() {
		if m, err := detail.Value(); err == nil {
			if d, ok := m.(*pb.ErrorDetail); ok {
				return proto.CloneOf(d)
			}
		}
	}
	return nil
}

// notSentError marks a call that never left this process.
type notSentError struct{ error }

func (e notSentError) Unwrap() error { return e.error }

// NotSent reports whether the call that returned err never left this process, so
// that nothing can have been done.
func NotSent(err error) bool {
	var e notSentError
	return errors.As(err, &e)
}
