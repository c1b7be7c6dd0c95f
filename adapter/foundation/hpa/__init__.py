"""The HorizontalPodAutoscaler's arithmetic, exact enough to replace the controller.

A simulator, a demo or a test gets the number that kube-controller-manager (autoscaling/v2) writes, with every step that
led to it. Everything is a pure function of plain data: the clock is an argument, and what the controller remembers
between two evaluations is a value that goes in and comes out.

    spec = HPASpec(
        metrics=(PodsMetric("websocket_connections", AverageValue(100_000)),),  # 100 for each pod, in thousandths
        min_replicas=2,
        max_replicas=20,
        behaviour=Behaviour(scale_down=replace(DEFAULT_SCALE_DOWN, stabilization_window_seconds=10)),
    )
    workload = HpaWorkload(spec_replicas=2, status_replicas=2, pods=(Pod("web-0"), Pod("web-1")))
    observed = PodSamples({"web-0": PodSample(150_000), "web-1": PodSample(130_000)})
    decision = evaluate(spec, workload, [observed], history, now=clock())
    decision.desired  # 3
    decision.reason  # DesiredWithinRange
    decision.steps  # metric, largest, stabilized, limited: value and calculation of each
    history = decision.history

An External metric is observed as `Totals((milli, ...))` with one number for each series, and an Object metric as
`Totals` with a single number. All amounts are whole thousandths (`Quantity.milli_value` of `objects/quantities`), and
all times are seconds on one clock. A metric without a value is `Unavailable`; it is never 0.

Each name is imported from the module of its part: `spec` and `rules` (the HPA), `pods` and `proposals` (the workload
and what was observed), `replicas` (values for each pod), `totals` (Object and External), `behaviour` (look-back and
rates), `evaluation` (all of it, in order), `decision` and `history` (the result).
"""
