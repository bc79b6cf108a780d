; OutputUsage: Every output of every node is read by a node or is an output of its graph.
; Text: 2-wellformed.sonnx
;   forall n in all_nodes(), t in outs(n): used(t) or is_output(t)
; Rule sonnx R1/per-output (Every output is used): Each operation outputs must be used in the input mapping of at least one operation or be mapped to some graph output.
; Model: working-group.onnx, sha256 eb8b17187955ee5df1752ac5a526cfb490c2d295ac2e003fbc8d4876c29d49f3
; Question: can the facts and the negated rule hold together?
; unsat: the rule holds.
; sat: OutputUsage.formula.smt2 may be unsat; where that is sat too, the model leaves the rule open.
; (To answer sat, cvc5 may need its option --mbqi.)
(set-info :smt-lib-version 2.6)
(set-logic UFLIA)

; ---- Sorts and their elements.
(define-sort Graph () Int)
(define-fun Graph.0 () Graph 0) ; /
(define-sort Node () Int)
(define-fun Node.0 () Node 0) ; /0:Add
(define-fun Node.1 () Node 1) ; /1:Constant
(define-fun Node.2 () Node 2) ; /2:Mul
(define-fun Node.3 () Node 3) ; /3:Sub
(define-sort Tensor () Int)
(define-fun Tensor.0 () Tensor 0) ; /"I1"
(define-fun Tensor.1 () Tensor 1) ; /"I2"
(define-fun Tensor.2 () Tensor 2) ; /"O1"
(define-fun Tensor.3 () Tensor 3) ; /"op2_out"
(define-fun Tensor.4 () Tensor 4) ; /"O2"
(define-fun Tensor.5 () Tensor 5) ; /"op4_out"

; ---- Facts of the model. What no line speaks of is open.
(declare-fun all_nodes (Node) Bool)
(assert (all_nodes Node.0))
(assert (all_nodes Node.1))
(assert (all_nodes Node.2))
(assert (all_nodes Node.3))
(assert (forall ((y Node)) (=> (all_nodes y) (or (= y Node.0) (= y Node.1) (= y Node.2) (= y Node.3)))))
(declare-fun consumers (Tensor Node) Bool)
(assert (consumers Tensor.0 Node.0))
(assert (consumers Tensor.0 Node.3))
(assert (forall ((y Node)) (=> (consumers Tensor.0 y) (or (= y Node.0) (= y Node.3)))))
(assert (consumers Tensor.1 Node.0))
(assert (consumers Tensor.1 Node.3))
(assert (forall ((y Node)) (=> (consumers Tensor.1 y) (or (= y Node.0) (= y Node.3)))))
(assert (consumers Tensor.2 Node.2))
(assert (forall ((y Node)) (=> (consumers Tensor.2 y) (= y Node.2))))
(assert (consumers Tensor.3 Node.2))
(assert (forall ((y Node)) (=> (consumers Tensor.3 y) (= y Node.2))))
(assert (forall ((x0 Tensor) (y Node)) (=> (consumers x0 y) (or (= x0 Tensor.0) (= x0 Tensor.1) (= x0 Tensor.2) (= x0 Tensor.3)))))
(declare-fun outputs (Graph Tensor) Bool)
(assert (outputs Graph.0 Tensor.2))
(assert (outputs Graph.0 Tensor.4))
(assert (forall ((y Tensor)) (=> (outputs Graph.0 y) (or (= y Tensor.2) (= y Tensor.4)))))
(assert (forall ((x0 Graph) (y Tensor)) (=> (outputs x0 y) (= x0 Graph.0))))
(declare-fun outs (Node Tensor) Bool)
(assert (outs Node.0 Tensor.2))
(assert (forall ((y Tensor)) (=> (outs Node.0 y) (= y Tensor.2))))
(assert (outs Node.1 Tensor.3))
(assert (forall ((y Tensor)) (=> (outs Node.1 y) (= y Tensor.3))))
(assert (outs Node.2 Tensor.4))
(assert (forall ((y Tensor)) (=> (outs Node.2 y) (= y Tensor.4))))
(assert (outs Node.3 Tensor.5))
(assert (forall ((y Tensor)) (=> (outs Node.3 y) (= y Tensor.5))))
(assert (forall ((x0 Node) (y Tensor)) (=> (outs x0 y) (or (= x0 Node.0) (= x0 Node.1) (= x0 Node.2) (= x0 Node.3)))))
(declare-fun scope (Tensor) Graph)
(assert (= (scope Tensor.0) Graph.0))
(assert (= (scope Tensor.1) Graph.0))
(assert (= (scope Tensor.2) Graph.0))
(assert (= (scope Tensor.3) Graph.0))
(assert (= (scope Tensor.4) Graph.0))
(assert (= (scope Tensor.5) Graph.0))

; ---- Definitions of the text.
(define-fun used ((t Tensor)) Bool
  (exists ((n Node)) (consumers t n)))
(define-fun is_output ((t Tensor)) Bool
  (outputs (scope t) t))

; ---- The rule.
(define-fun rule () Bool
  (forall ((n Node) (t Tensor)) (=> (and (all_nodes n) (outs n t)) (or (used t) (is_output t)))))

; ---- The question.
(assert (not rule))
(check-sat)
