# What is deployed with: the systemd unit is one, as far as a machine without a service manager can
# tell, and the container's files name what there is. No engine runs here.
use strict;
use warnings FATAL => 'all';

use File::Copy qw(copy);
use JSON::PP qw(decode_json);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Program;
use Pulse::Server;

my $folder = 'worker/deploy';

sub has_tool { return system("command -v $_[0] >/dev/null 2>&1") == 0 }

# A copy of a unit, as an instance that starts the program of this tree. systemd has no complaint of
# it, and finds it exposed to no more than so many tenths.
sub checked_unit {
    my ($program, $unit, $exposure) = @_;
    my $text = slurp_file("$folder/$unit\@.service");
    my $path = (run_command([ 'which', $program ]))[0];
    $text =~ s{^ExecStart=\S+}{ExecStart=$path}m;
    my $copy = PostgreSQL::Test::Utils::tempdir_short() . "/$unit\@mail.service";
    append_to_file($copy, $text);
    my ($out, $err) = run_command([ 'systemd-analyze', 'verify', '--man=no', $copy ]);
    is("$out$err", '', 'systemd has nothing to say of it');
    unlike($text, qr/^Documentation=file:/m, 'it names no file that is not installed');
    my $status = system(qw(systemd-analyze security --offline=true --no-pager),
        "--threshold=$exposure", '--quiet', $copy);
    is($status, 0, "its exposure is at most $exposure of 100");
    return ($text, $copy);
}

subtest 'the unit of pulse serve' => sub {
    plan skip_all => 'no systemd-analyze here' if !has_tool('systemd-analyze');
    my ($unit) = checked_unit('pulse', 'pulse-serve', 12);
    like($unit, qr/^DynamicUser=yes$/m, 'its user is no other program\'s');
    like($unit, qr/^ExecStart=.* --tokens %d\/tokens /m, 'it has tokens, whatever else it is told');
    like($unit, qr/^LoadCredential=tokens:/m, 'which root alone need be able to read');
};

# As systemd does for a unit with DynamicUser or RestrictSUIDSGID: openat2 is no system call there,
# because a filter cannot read the mode that a caller of openat2 asks for.
my $without_openat2 = <<'PY';
import ctypes, os, struct, sys
openat2, no_new_privileges, set_seccomp, enosys = 437, 38, 22, 38
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, openat2), (6, 0, 0, 0x50000 | enosys), (6, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filter = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, 2, filter, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
PY

subtest 'a worker as a service' => sub {
    my $node = start_server('service');
    add_job($node, 'a_task');
    my $tasks = PostgreSQL::Test::Utils::tempdir();
    append_to_file("$tasks/a_task", "#!/bin/sh\n");
    chmod 0755, "$tasks/a_task";
    my ($out, $err) = run_command([ 'python3', '-c', $without_openat2, 'pulse-worker', '--once',
        '--tasks', $tasks, '--database', $node->connstr('postgres') ]);
    is(value($node, 'SELECT count(*) FROM pulse.job'), 0, 'runs its tasks') or diag $err;
};

subtest 'the systemd unit' => sub {
    plan skip_all => 'no systemd-analyze here' if !has_tool('systemd-analyze');
    my ($unit, $copy) = checked_unit('pulse-worker', 'pulse-worker', 17);
    my ($out, $err);
    like($unit, qr/^KillMode=mixed$/m, 'a stop is told to the worker alone');
    my ($grace) = $unit =~ /--grace (\d+)s/;
    my ($limit) = $unit =~ /^TimeoutStopSec=(\d+)s$/m;
    cmp_ok($limit, '>', $grace + 7, 'which has its grace, and time to end what does not');
    mkdir "$copy.d" or die "$copy.d: $!\n";
    copy("$folder/relaxed.conf", "$copy.d/relaxed.conf") or die "relaxed.conf: $!\n";
    ($out, $err) = run_command([ 'systemd-analyze', 'verify', '--man=no', $copy ]);
    is("$out$err", '', 'nor of the relaxed drop-in');
};

# Only there its packages and folders have the names that the image has.
sub is_release_of_image {
    my ($release) = slurp_file("$folder/Dockerfile") =~ /^FROM debian:(\w+) AS build$/m;
    return slurp_file('/etc/os-release') =~ /^VERSION_CODENAME=$release$/m;
}

subtest 'the Dockerfile' => sub {
    my $text = slurp_file("$folder/Dockerfile");
    $text =~ s/\\\n//g;
    my (%stage, $last);
    for my $line (grep { /^[A-Z]/ } split /\n/, $text) {
        if ($line =~ /^FROM (\S+) AS (\w+)$/) { $last = $stage{$2} = { from => $1 } }
        $last->{user} = $1 if $line =~ /^USER (\S+)$/;
        if (my ($from, $source) = $line =~ /^COPY (?:--from=(\w+) )?(\S+)/) {
            ok(defined $from ? $stage{$from} : -e $source, "there is what '$line' copies");
            next if !defined $from;
            next if $ENV{PULSE_STAGE} eq '/' || !is_release_of_image();
            my ($staged) = $source =~ m{^/stage(/.+)$};
            ok(-e "$ENV{PULSE_STAGE}$staged", "$staged is installed");
        }
    }
    is($stage{worker}{user}, 'pulse', 'the worker is not root');
    like($text, qr/^STOPSIGNAL SIGTERM$/m, 'it is told to stop by what it takes for that');
};

# The packages that a stage of the Dockerfile installs.
sub packages_of {
    my ($stage) = @_;
    my $text = slurp_file("$folder/Dockerfile") =~ s/\\\n//gr;
    my ($names) = $text =~ /^FROM \S+ AS $stage\n.*?--no-install-recommends ([^&]+)/ms;
    return split ' ', $names;
}

subtest 'the packages of the Dockerfile' => sub {
    plan skip_all => 'not the Debian of the image' if !is_release_of_image();
    plan skip_all => 'no binutils here' if !has_tool('objdump');
    my %in_image = map { $_ => 1 } packages_of('worker');
    # In every image, with libpq5, and with libncursesw6.
    $in_image{$_} = 1 for qw(libc6 libgcc-s1 libstdc++6 libssl3 libtinfo6);
    for my $name (qw(pulse-worker pulse)) {
        my ($program) = run_command([ 'which', $name ]);
        my ($header) = run_command([ 'objdump', '-p', $program ]);
        for my $library ($header =~ /^  NEEDED +(\S+)/mg) {
            my ($owners) = run_command([ 'dpkg', '-S', "*/$library" ]);
            my @owners = $owners =~ /^([^:]+)/mg;
            ok(scalar(grep { $in_image{$_} } @owners), "$name: the image has $library");
        }
    }
    my ($known) = run_command([ 'apt-cache', 'pkgnames' ]);
    my %known = map { $_ => 1 } split /\n/, $known;
    for my $package (map { packages_of($_) } qw(build worker)) {
        ok($known{$package}, "there is a package $package");
    }
};

# The options that the help of a command lists, and the commands below the command.
sub options_and_commands {
    my ($help) = run_command([ @_, '--help' ]);
    my ($commands) = $help =~ /^Subcommands:\n(.*)/ms;
    my @options = map { split /,/ } $help =~ /^  (-[\w,-]+)/mg;
    return (\@options, [ ($commands // '') =~ /^  (\w+)/mg ]);
}

# Those of these options that no headline of the text names.
sub untold {
    my ($text, @options) = @_;
    return grep { $text !~ /^\.B.*(?<![\w-])$_(?![\w-])/m } @options;
}

sub manual_of { return slurp_file($_[0]) =~ s/\\-/-/gr }

subtest 'the manual has each option of pulse-worker' => sub {
    my ($options) = options_and_commands('pulse-worker');
    cmp_ok(scalar @$options, '>', 15, 'there are options');
    is_deeply([ untold(manual_of('worker/share/pulse-worker.1'), @$options) ], [],
        'and each is in it');
    my ($table) = slurp_file('docs/tasks.md') =~ /^## pulse-worker\n(.*?)(?=^## |\z)/ms;
    my @absent = grep { $table !~ /`$_`/ } grep { /^--/ && !/^--(?:help|version)$/ } @$options;
    is_deeply(\@absent, [], 'and in the table of docs/tasks.md');
};

subtest 'the manual has each option of each command of pulse' => sub {
    my $manual = manual_of('console/share/pulse.1');
    my %told = $manual =~ /^\.S[SH] (\w+).*?\n(.*?)(?=^\.S[SH] |\z)/msg;
    my ($seen, @untold, @commands) = (0);
    push @commands, [];
    while (my $command = shift @commands) {
        my $text = $told{ $command->[0] // 'OPTIONS' } // '';
        $text .= $told{Filters} if $text =~ /^\.B Filters$/m;
        my ($options, $below) = options_and_commands('pulse', @$command);
        my @own = grep { !@$command || !/^(?:-h|--help)$/ } @$options;
        $seen += @own;
        push @untold, map { "@$command $_" } untold($text, @own);
        push @commands, map { [ @$command, $_ ] } @$below;
    }
    cmp_ok($seen, '>', 60, 'there are options');
    is_deeply(\@untold, [], 'and each is in the section of its command');
};

subtest 'the compose file' => sub {
    plan skip_all => 'no yaml for Python here' if system("python3 -c 'import yaml' 2>/dev/null");
    my $services = (documents("$folder/compose.yaml"))[0]{services};
    is_deeply([ sort keys %$services ], [ 'database', 'worker' ], 'a database and a worker');
    my $targets = join '|', slurp_file("$folder/Dockerfile") =~ /^FROM \S+ AS (\w+)$/mg;
    for my $name (sort keys %$services) {
        my $build = $services->{$name}{build};
        ok(-e "$folder/$build->{context}/$build->{dockerfile}", "$name: its Dockerfile");
        like($build->{target}, qr/^(?:$targets)$/, "$name: its stage");
    }
    ok($services->{worker}{init}, 'an init reaps what is left beside the worker');
    my ($tasks) = $services->{worker}{volumes}[0] =~ /^([^:]+):/;
    ok(scalar(grep { -f && -x } glob "$folder/$tasks/*"), 'a task for its worker');
    is($services->{worker}{depends_on}{database}{condition}, 'service_healthy', 'one by one');
};

subtest 'the roles of the compose file' => sub {
    plan skip_all => 'no yaml for Python here' if system("python3 -c 'import yaml' 2>/dev/null");
    my $services = (documents("$folder/compose.yaml"))[0]{services};
    my $node = start_server('main');
    value($node, 'CREATE DATABASE app');
    {
        local $ENV{PULSE_WORKER_PASSWORD} = q{it's};
        $node->command_ok([ qw(psql -Xq -v ON_ERROR_STOP=1 -f), "$folder/create.sql",
                $node->connstr('app') ], 'the script of the database runs');
    }
    my $role = $services->{worker}{environment}{PGUSER};
    is(value($node, "SELECT rolsuper, rolcreaterole, rolcanlogin FROM pg_roles
            WHERE rolname = '$role'"), 'f|f|t', 'the worker is no superuser');
    is(value($node, "SELECT rolpassword <> '' FROM pg_authid WHERE rolname = '$role'"), 't',
        'and has the password that was given');
    my $kinds = q{SELECT string_agg(r.rolname || ' ' || pulse_internal.kinds_of(r.oid)::text, ', '
            ORDER BY r.rolname)
        FROM pg_roles AS r WHERE NOT r.rolsuper AND r.rolname !~ '^pg_'};
    is(value($node, $kinds, 'app'), "pulse_http {}, $role {worker}, shop {producer}",
        'each role has the rights of its kind');
    is(value($node, q{SELECT rolinherit FROM pg_roles WHERE rolname = 'pulse_http'}), 'f',
        'that of the server has none before it becomes a role of a token');
    unlike($services->{worker}{environment}{PGPASSWORD}, qr/\bPULSE_PASSWORD\b/,
        'the worker does not know the password of the superuser');
};

# The documents of a YAML file.
sub documents {
    my ($file) = @_;
    my $read = 'import json, sys, yaml; '
      . 'json.dump(list(yaml.safe_load_all(open(sys.argv[1]))), sys.stdout)';
    my ($json) = run_command([ 'python3', '-c', $read, $file ]);
    return @{ decode_json($json) };
}

# A worker of the image, with the container's arguments, that finds no database.
sub start_without_database {
    my ($entry, @arguments) = @_;
    my $tasks = PostgreSQL::Test::Utils::tempdir('tasks');
    copy("$folder/tasks/greet", "$tasks/greet") or die "greet: $!\n";
    chmod 0755, $tasks, "$tasks/greet";
    my %local = ('--tasks' => $tasks, '--http' => '127.0.0.1:0');
    my $option = '';
    my @here = map { my $word = $local{$option} // $_; $option = $_; $word } @$entry;
    my $worker = Pulse::Program->start('pod', [ @here, @arguments, '-d', 'host=/nowhere' ],
        output => 'stderr');
    my $serving = $worker->lines->wait_for('its address', sub { $_[0] =~ /"serving"/ });
    return ($worker, $serving =~ /127\.0\.0\.1:(\d+)/);
}

subtest 'what the unit and the image say can be said again' => sub {
    my ($unit) = slurp_file("$folder/pulse-worker\@.service") =~ /^ExecStart=\S+ (.*?) \$\w+$/ms;
    my ($entry) = slurp_file("$folder/Dockerfile") =~ /^ENTRYPOINT (\[.*\])$/m;
    my ($program, @image) = @{ decode_json($entry) };
    my @first = split ' ', $unit =~ s/\\\n//gr;
    for my $option (qw(--name --tasks --grace)) {
        ok(scalar(grep { $_ eq $option } @first), "the unit says $option");
    }
    my ($worker) = start_without_database([ $program, @first, @image ], '--log-format', 'json',
        '--tasks' => PostgreSQL::Test::Utils::tempdir('again'), '--name' => 'again',
        '--grace' => '0ms', '--http' => '127.0.0.1:0');
    my $tasks = $worker->lines->wait_for('its tasks', sub { $_[0] =~ /"tasks"/ });
    is(decode_json($tasks)->{count}, 0, 'the last word counts');
    $worker->signal('TERM');
    like($worker->wait_exit, qr/^(?:0|75)$/, 'it ends when told');
};

subtest 'the Kubernetes manifest' => sub {
    plan skip_all => 'no yaml for Python here' if system("python3 -c 'import yaml' 2>/dev/null");
    my ($deployment, $budget) = documents("$folder/kubernetes.yaml");
    my $labels = $deployment->{spec}{template}{metadata}{labels};
    my $pod = $deployment->{spec}{template}{spec};
    my $container = $pod->{containers}[0];
    my $docker = slurp_file("$folder/Dockerfile");
    is_deeply($_->{spec}{selector}{matchLabels}, $labels, "$_->{kind}: selects these pods")
      for $deployment, $budget;
    my ($grace) = "@{ $container->{args} }" =~ /--grace (\d+)s/;
    cmp_ok($pod->{terminationGracePeriodSeconds}, '>=', $grace + 15,
        'a stop has the grace of the worker, and time to end what does not');
    ok($pod->{securityContext}{runAsNonRoot} && $pod->{securityContext}{runAsUser},
        'its user is no root, by number');
    my ($port) = $docker =~ /^EXPOSE (\d+)$/m;
    is($container->{ports}[0]{containerPort}, $port, 'the port is the one of the image');
    is($deployment->{spec}{template}{metadata}{annotations}{'prometheus.io/port'}, $port,
        'which is scraped');
    my ($entry) = $docker =~ /^ENTRYPOINT (\[.*\])$/m;
    my ($worker, $served) = start_without_database(decode_json($entry), @{ $container->{args} });
    my %answers = (livenessProbe => 200, readinessProbe => 503);
    for my $probe (sort keys %answers) {
        my $get = $container->{$probe}{httpGet};
        is($get->{port}, $container->{ports}[0]{name}, "$probe: the port");
        my ($code) = run_command([ qw(curl -s -o /dev/null -w %{http_code}),
            "http://127.0.0.1:$served$get->{path}" ]);
        is($code, $answers{$probe}, "$probe: $get->{path} says $code while the database is away");
    }
    $worker->signal('TERM');
    like($worker->wait_exit, qr/^(?:0|75)$/, 'its arguments are understood, and it ends when told');
};

done_testing();
