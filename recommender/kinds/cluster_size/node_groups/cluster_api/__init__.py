"""Node groups of Cluster API: the annotated MachineDeployments, MachineSets and MachinePools."""
