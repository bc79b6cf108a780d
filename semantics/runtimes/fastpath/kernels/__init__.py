"""The kernels, a file for each family of operators; each exports its table `KERNELS`."""
