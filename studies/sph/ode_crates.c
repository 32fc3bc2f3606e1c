/* cc -O3 -I. studies/sph/ode_crates.c $(pkg-config --silence-errors --cflags --libs ode && echo -DUSE_ODE) -lm -o ode_crates && ./ode_crates
   SPDX-License-Identifier: MIT

   Another engine owns the bodies: ODE (www.ode.org, Debian's libode-dev, its C API) has nine crates of three densities,
   their contacts with each other and with the tank; fsi_sph.h has the water. Each crate is a COUPLED fsi_body. A step
   is: ODE's poses and velocities go into the fsi_bodys; the water steps; the reaction forces go back as forces of ODE's
   step. Where ODE is not installed the program says so and ends. lowest= is the height of the lowest crate's centre
   over half its side: 1 on the floor; floating= crates of 300 and 700 kg/m^3 whose centre is above half the water's
   depth at the end. */
#if !defined(USE_ODE)
#include <stdio.h>

int main(void)
{
    puts("ode_crates was built without ODE: install libode-dev and use the cc line in its first comment");
    return 0;
}
#else
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_sph.h"
#include "../../examples/kit/sph_tally.h"
#include "../../examples/kit/sph_crates.h"
#include <ode/ode.h>

#define FRAME 0.05
#define SIDE 0.2
#define LENGTH 1.2
#define WIDTH 0.6
#define LEVEL 0.4

enum { CRATES = 9 };
static const double density[3] = { 300, 700, 2000 };
static const uint32_t color[3] = { 0xe3b26b, 0xb9703a, 0x6d5a50 };

typedef struct engine {
    dWorldID world;
    dSpaceID space;
    dJointGroupID contacts;
    dBodyID ode[CRATES];
    ex_crate crates[CRATES];
} engine;

/* What ODE knows of a crate goes where the water reads it. ODE's quaternions begin with the real part. */
static void read_crate(engine *e, int k)
{
    const dBodyID ode = e->ode[k];
    const dReal *x = dBodyGetPosition(ode), *q = dBodyGetQuaternion(ode), *v = dBodyGetLinearVel(ode),
                *w = dBodyGetAngularVel(ode);
    fsi_body *b = &e->crates[k].body;
    b->pose.position = fsi_v3(x[0], x[1], x[2]);
    b->pose.orientation = fsi_quat_unit(fsi_quat_make(q[1], q[2], q[3], q[0]));
    b->velocity = fsi_v3(v[0], v[1], v[2]);
    b->angular_velocity = fsi_v3(w[0], w[1], w[2]);
    b->force = fsi_v3(0, 0, -9.81 * b->mass);
}

static void add_crate(ex_app *app, engine *e, fsi_sph *s, int k)
{
    ex_crate *c = &e->crates[k];
    dMass of;
    dGeomID geom = dCreateBox(e->space, SIDE, SIDE, SIDE);
    ex_crate_add(app, s, c, SIDE, density[k % 3], color[k % 3]);
    e->ode[k] = dBodyCreate(e->world);
    dMassSetBoxTotal(&of, c->body.mass, SIDE, SIDE, SIDE);
    dBodySetMass(e->ode[k], &of);
    dGeomSetBody(geom, e->ode[k]);
    dBodySetPosition(e->ode[k], LENGTH * (0.25 + 0.25 * (k % 3)) + 0.02 * (k / 3), WIDTH / 2 + 0.02 * (k % 2),
                     LEVEL + SIDE * (0.8 + 1.3 * (k / 3)));
    read_crate(e, k);
    ex_check(app, fsi_sph_teleport_obstacle(s, c->id));
}

/* ODE asks for what may touch. */
static void touch(void *data, dGeomID a, dGeomID b)
{
    engine *e = (engine *)data;
    dContact contact[8];
    int k, n = dCollide(a, b, 8, &contact[0].geom, sizeof contact[0]);
    for (k = 0; k < n; k++) {
        memset(&contact[k].surface, 0, sizeof contact[k].surface);
        contact[k].surface.mode = dContactBounce;
        contact[k].surface.mu = 0.4;
        contact[k].surface.bounce = 0.1;
        contact[k].surface.bounce_vel = 0.3;
        dJointAttach(dJointCreateContact(e->world, e->contacts, &contact[k]), dGeomGetBody(a), dGeomGetBody(b));
    }
}

static void make_engine(engine *e)
{
    dInitODE2(0);
    e->world = dWorldCreate();
    e->space = dHashSpaceCreate(0);
    e->contacts = dJointGroupCreate(0);
    dWorldSetGravity(e->world, 0, 0, -9.81);
    dCreatePlane(e->space, 0, 0, 1, 0);
    dCreatePlane(e->space, 1, 0, 0, 0);
    dCreatePlane(e->space, -1, 0, 0, -LENGTH);
    dCreatePlane(e->space, 0, 1, 0, 0);
    dCreatePlane(e->space, 0, -1, 0, -WIDTH);
}

/* One step of both: what the water did to a crate is a force of ODE's step. */
static void advance(ex_app *app, engine *e, fsi_sph *s, double dt)
{
    int k;
    for (k = 0; k < CRATES; k++) read_crate(e, k);
    ex_check(app, fsi_sph_step(s, dt));
    for (k = 0; k < CRATES; k++) {
        const fsi_body *b = &e->crates[k].body;
        dBodyAddForce(e->ode[k], b->reaction_force.x, b->reaction_force.y, b->reaction_force.z);
        dBodyAddTorque(e->ode[k], b->reaction_torque.x, b->reaction_torque.y, b->reaction_torque.z);
    }
    dSpaceCollide(e->space, e, touch);
    dWorldStep(e->world, dt);
    dJointGroupEmpty(e->contacts);
    for (k = 0; k < CRATES; k++) read_crate(e, k);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_tally tally = { 0 };
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_surface_desc skin = fsi_surface_default_desc();
    fsi_surface *surface;
    fsi_sph *s;
    fsi_box3 room, water;
    engine e;
    double lowest = 1e9;
    int k, frame, floating = 0;

    ex_init(&app, "ode_crates", "Nine crates that ODE owns fall into a tank.");
    app.res = 7;
    app.res_help = "particles along a side of a crate: dx = 0.2 m / res";
    app.frames = 50;
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    room.lo = water.lo = fsi_v3(0, 0, 0);
    room.hi = fsi_v3(LENGTH, WIDTH, 0.9);
    water.hi = fsi_v3(LENGTH, WIDTH, LEVEL);
    desc.context = skin.context = &app.context;
    desc.spacing = skin.spacing = SIDE / app.res;
    desc.depth = 0.6;
    desc.domain = room;
    desc.domain.hi.z = 2;
    ex_check(&app, fsi_sph_create(&s, &desc));
    ex_check(&app, fsi_sph_fill_box(s, water, fsi_v3(0, 0, 0), NULL));
    make_engine(&e);
    for (k = 0; k < CRATES; k++) add_crate(&app, &e, s, k);
    ex_check(&app, fsi_surface_create(&surface, &skin));
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, room, 25, 18);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            advance(&app, &e, s, FRAME / 10);
            ex_tally_step(&app, &tally, s, desc.domain, 1);
        }
        if (app.images) ex_crates_picture(&app, &scene, surface, s, e.crates, CRATES, frame);
        ex_progress(&app, frame + 1);
    }

    for (k = 0; k < CRATES; k++) {
        double z = e.crates[k].body.pose.position.z;
        if (z < lowest) lowest = z;
        floating += k % 3 < 2 && z > LEVEL / 2;
    }
    ex_figure(&app, "lowest", "%.3f", lowest / (SIDE / 2));
    ex_figure(&app, "floating", "%.0f", floating);
    ex_tally_figures(&app, &tally, s);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    fsi_sph_destroy(s);
    for (k = 0; k < CRATES; k++) fsi_mesh_destroy(e.crates[k].mesh);
    dJointGroupDestroy(e.contacts);
    dSpaceDestroy(e.space);
    dWorldDestroy(e.world);
    dCloseODE();
    return ex_end(&app);
}
#endif
