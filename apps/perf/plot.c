/* plot.c - see plot.h. */
#include "plot.h"
void plot_open(struct plot *plot, const char *path)
{
	(void)plot;
	(void)path;
}
void plot_machine(struct plot *plot, const struct machine *machine)
{
	(void)plot;
	(void)machine;
}
void plot_add(struct plot *plot, const struct result *result, const struct result *bare)
{
	(void)plot;
	(void)result;
	(void)bare;
}
void plot_close(struct plot *plot)
{
	(void)plot;
}
